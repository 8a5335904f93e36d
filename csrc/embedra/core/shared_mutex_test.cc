#include "embedra/core/shared_mutex.h"

#include <atomic>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

#include "doctest/doctest.h"

namespace embedra::internal {
namespace {

TEST_CASE("readers share, writers exclude") {
  SharedMutex mutex;
  int64_t value = 0;  // unprotected: a race shows under TSan, or as a wrong sum
  std::atomic<int> odd{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 2000; ++i) {
        if ((i + t) % 3 == 0) {
          std::unique_lock<SharedMutex> lock(mutex);
          ++value;
          ++value;
        } else {
          std::shared_lock<SharedMutex> lock(mutex);
          odd += value % 2 != 0;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(odd == 0);
  CHECK(value % 2 == 0);
  CHECK(value > 0);
}

TEST_CASE("a stream of readers does not starve a writer, nor the reverse") {
  SharedMutex mutex;
  std::atomic<bool> stop{false};
  std::atomic<int> reads{0};
  std::atomic<int> writes{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      while (!stop) {
        std::shared_lock<SharedMutex> lock(mutex);
        std::this_thread::yield();
        ++reads;
      }
    });
    threads.emplace_back([&] {
      while (!stop) {
        std::unique_lock<SharedMutex> lock(mutex);
        ++writes;
      }
    });
  }
  while (reads < 200 || writes < 200) std::this_thread::yield();
  stop = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(reads >= 200);
  CHECK(writes >= 200);
}

}  // namespace
}  // namespace embedra::internal
