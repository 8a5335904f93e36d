#include "embedra/ops/table_parallel.h"

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/device_base.h"
#include "tensorflow/core/lib/core/threadpool.h"

namespace embedra {
namespace {

// Tables handed out one by one to whoever asks. Owned jointly by the kernel and
// its helpers, as a helper may be scheduled only after the kernel has returned;
// it then finds no table left and never touches `body`.
class TableQueue {
 public:
  TableQueue(int size, const std::function<absl::Status(int)>& body)
      : size_(size), body_(&body), results_(size) {}

  // Works until no table is left to start.
  void Work() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (next_ < size_) {
      const int i = next_++;
      lock.unlock();
      absl::Status result = (*body_)(i);
      lock.lock();
      results_[i] = std::move(result);
      if (++finished_ == size_) all_finished_.notify_all();
    }
  }

  absl::Status Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    all_finished_.wait(lock, [this] { return finished_ == size_; });
    for (absl::Status& result : results_) {
      if (!result.ok()) return std::move(result);
    }
    return absl::OkStatus();
  }

 private:
  const int size_;
  const std::function<absl::Status(int)>* const body_;
  std::mutex mutex_;
  std::condition_variable all_finished_;
  int next_ = 0;
  int finished_ = 0;
  std::vector<absl::Status> results_;
};

}  // namespace

ParallelFor DeviceParallelFor(tensorflow::OpKernelContext* ctx) {
  // TensorFlow counts in cycles.
  constexpr int64_t kCyclesPerNs = 3;
  tensorflow::thread::ThreadPool* workers =
      ctx->device()->tensorflow_cpu_worker_threads()->workers;
  ParallelFor parallel;
  parallel.max_threads = workers->NumThreads();
  parallel.run = [workers](int64_t n, int64_t cost_ns,
                           const ParallelFor::Body& body) {
    workers->ParallelFor(
        n,
        tensorflow::thread::ThreadPool::SchedulingParams::Adaptive(
            std::max<int64_t>(1, cost_ns) * kCyclesPerNs),
        body);
  };
  return parallel;
}

absl::Status ForEachTable(tensorflow::OpKernelContext* ctx, int n,
                          int64_t cost_ns,
                          const std::function<absl::Status(int)>& body) {
  // About what it takes to wake a thread, twice.
  constexpr int64_t kWorthAHelperNs = 20000;
  const int threads =
      ctx->device()->tensorflow_cpu_worker_threads()->num_threads;
  const int helpers = static_cast<int>(
      std::min<int64_t>(std::min(threads, n) - 1, cost_ns / kWorthAHelperNs));
  if (helpers < 1 || ctx->runner() == nullptr) {
    for (int i = 0; i < n; ++i) TF_RETURN_IF_ERROR(body(i));
    return absl::OkStatus();
  }
  auto queue = std::make_shared<TableQueue>(n, body);
  for (int i = 0; i < helpers; ++i)
    (*ctx->runner())([queue] { queue->Work(); });
  queue->Work();
  return queue->Wait();
}

}  // namespace embedra
