// ThreadPool: threads for the tests and the benchmark of the core. In a
// training job TensorFlow's own pool is used.

#ifndef EMBEDRA_CORE_THREAD_POOL_H_
#define EMBEDRA_CORE_THREAD_POOL_H_

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "embedra/core/parallel.h"

namespace embedra {

class ThreadPool {
 public:
  // `threads` in all, the caller of a ParallelFor among them. Work of less than
  // `min_cost_ns` is not split.
  explicit ThreadPool(int threads, int64_t min_cost_ns = 0)
      : min_cost_ns_(min_cost_ns) {
    for (int t = 1; t < threads; ++t) {
      workers_.emplace_back([this] { Work(); });
    }
  }

  ~ThreadPool() {
    {
      std::lock_guard<std::mutex> guard(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  ParallelFor parallel() {
    ParallelFor result;
    result.max_threads = static_cast<int>(workers_.size()) + 1;
    result.run = [this](int64_t n, int64_t cost_ns,
                        const ParallelFor::Body& body) {
      Run(n, cost_ns, body);
    };
    return result;
  }

 private:
  // Threads claim chunks until none is left.
  struct Job {
    Job(int64_t n, int64_t chunk, const ParallelFor::Body& body)
        : n(n), chunk(chunk), body(body) {}

    void Help() {
      for (;;) {
        const int64_t begin = next.fetch_add(chunk);
        if (begin >= n) return;
        const int64_t end = std::min(n, begin + chunk);
        body(begin, end);
        std::lock_guard<std::mutex> guard(mutex);
        done += end - begin;
        if (done == n) finished.notify_all();
      }
    }

    void Wait() {
      std::unique_lock<std::mutex> guard(mutex);
      finished.wait(guard, [this] { return done == n; });
    }

    const int64_t n;
    const int64_t chunk;
    const ParallelFor::Body body;
    std::atomic<int64_t> next{0};
    std::mutex mutex;
    std::condition_variable finished;
    int64_t done = 0;
  };

  void Run(int64_t n, int64_t cost_ns, const ParallelFor::Body& body) {
    const int64_t threads = static_cast<int64_t>(workers_.size()) + 1;
    if (threads == 1 || n == 1 || n * cost_ns < min_cost_ns_) {
      body(0, n);
      return;
    }
    const int64_t chunk = std::max<int64_t>(1, n / (4 * threads));
    const auto job = std::make_shared<Job>(n, chunk, body);
    {
      std::lock_guard<std::mutex> guard(mutex_);
      for (int64_t t = 1; t < threads; ++t) jobs_.push_back(job);
    }
    wake_.notify_all();
    job->Help();
    job->Wait();
  }

  void Work() {
    for (;;) {
      std::shared_ptr<Job> job;
      {
        std::unique_lock<std::mutex> guard(mutex_);
        wake_.wait(guard, [this] { return stop_ || !jobs_.empty(); });
        if (stop_) return;
        job = jobs_.front();
        jobs_.pop_front();
      }
      job->Help();
    }
  }

  const int64_t min_cost_ns_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::shared_ptr<Job>> jobs_;
  bool stop_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace embedra

#endif  // EMBEDRA_CORE_THREAD_POOL_H_
