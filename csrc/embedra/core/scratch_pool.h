// ScratchPool: scratch memory for the bodies of a ParallelFor.
//
// Bodies must not allocate: memory may be short, and by then half of the batch
// is written. The pool is made before, with one piece for each body that may
// run at once; should more run, they wait for a piece.

#ifndef EMBEDRA_CORE_SCRATCH_POOL_H_
#define EMBEDRA_CORE_SCRATCH_POOL_H_

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

#include "embedra/core/buffer.h"
#include "embedra/core/parallel.h"

namespace embedra::internal {

class ScratchPool {
 public:
  // Pieces of `size` float32. Throws std::bad_alloc.
  ScratchPool(int64_t size, const ParallelFor& parallel)
      : memory_(size * std::max(parallel.max_threads, 1)),
        free_(static_cast<size_t>(std::max(parallel.max_threads, 1))) {
    for (size_t i = 0; i < free_.size(); ++i) {
      free_[i] = memory_.data() + static_cast<int64_t>(i) * size;
    }
  }

  // Holds a piece while it lives.
  class Piece {
   public:
    explicit Piece(ScratchPool& pool) : pool_(pool) {
      std::unique_lock<std::mutex> guard(pool_.mutex_);
      pool_.freed_.wait(guard, [this] { return !pool_.free_.empty(); });
      data_ = pool_.free_.back();
      pool_.free_.pop_back();
    }
    ~Piece() {
      std::lock_guard<std::mutex> guard(pool_.mutex_);
      pool_.free_.push_back(data_);  // never grows
      pool_.freed_.notify_one();
    }
    Piece(const Piece&) = delete;
    Piece& operator=(const Piece&) = delete;

    float* data() const { return data_; }

   private:
    ScratchPool& pool_;
    float* data_;
  };

 private:
  Buffer<float> memory_;
  std::mutex mutex_;
  std::condition_variable freed_;
  std::vector<float*> free_;
};

}  // namespace embedra::internal

#endif  // EMBEDRA_CORE_SCRATCH_POOL_H_
