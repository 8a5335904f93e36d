// SharedMutex: a reader/writer lock that starves neither side.
//
// std::shared_mutex leaves the choice between readers and writers to the
// platform, and on Linux readers win: a stream of lookups would hold an update
// off for ever. Here a waiting writer stops new readers, and a writer that
// leaves lets in all readers that gathered meanwhile before the next writer
// ("phase-fair": Brandenburg and Anderson, ECRTS 2009).
//
// Meets SharedLockable; use std::shared_lock and std::unique_lock. A table
// takes it once for a whole batch, so simplicity counts more than nanoseconds.

#ifndef EMBEDRA_CORE_SHARED_MUTEX_H_
#define EMBEDRA_CORE_SHARED_MUTEX_H_

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace embedra::internal {

class SharedMutex {
 public:
  void lock() {
    std::unique_lock<std::mutex> guard(mutex_);
    ++waiting_writers_;
    writers_.wait(guard, [this] { return !writing_ && readers_ == 0; });
    --waiting_writers_;
    writing_ = true;
  }

  void unlock() {
    std::lock_guard<std::mutex> guard(mutex_);
    writing_ = false;
    if (waiting_readers_ > 0) {
      // Admitted here, not when they wake: a writer cannot slip in between.
      readers_ += waiting_readers_;
      waiting_readers_ = 0;
      ++phase_;
      readers_admitted_.notify_all();
    } else {
      writers_.notify_one();
    }
  }

  void lock_shared() {
    std::unique_lock<std::mutex> guard(mutex_);
    if (!writing_ && waiting_writers_ == 0) {
      ++readers_;
      return;
    }
    ++waiting_readers_;
    const uint64_t phase = phase_;
    readers_admitted_.wait(guard, [&] { return phase_ != phase; });
  }

  void unlock_shared() {
    std::lock_guard<std::mutex> guard(mutex_);
    if (--readers_ == 0) writers_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable writers_;
  std::condition_variable readers_admitted_;
  int64_t readers_ = 0;
  int64_t waiting_readers_ = 0;
  int64_t waiting_writers_ = 0;
  uint64_t phase_ = 0;  // counts the admissions of waiting readers
  bool writing_ = false;
};

}  // namespace embedra::internal

#endif  // EMBEDRA_CORE_SHARED_MUTEX_H_
