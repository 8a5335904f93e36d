// MemoryPool: large blocks of memory that are used again and again.
//
// A training step asks for the same blocks each time. malloc gives large ones
// back to the kernel as soon as they are free, and each page of the next one
// costs a fault; blocks of the pool keep their pages.

#ifndef EMBEDRA_CORE_MEMORY_POOL_H_
#define EMBEDRA_CORE_MEMORY_POOL_H_

#include <cstddef>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "embedra/core/memory_block.h"

namespace embedra::internal {

// Thread safe.
class MemoryPool {
 public:
  // Smaller blocks are better off with malloc.
  static constexpr size_t kLeast = MemoryBlock::kMapped;

  // Keeps up to `most_idle` bytes that nobody uses.
  explicit MemoryPool(size_t most_idle) : most_idle_(most_idle) {}

  // The pool of the process, which is never destroyed.
  static MemoryPool& Shared();

  // A block of at least `bytes`, of any content, aligned to a page. Null if
  // memory is short.
  void* Take(size_t bytes) noexcept;

  // Gives back what `Take` returned.
  void Give(void* data) noexcept;

  size_t idle_bytes() const;

 private:
  const size_t most_idle_;
  mutable std::mutex mutex_;
  size_t idle_bytes_ = 0;
  std::map<size_t, std::vector<MemoryBlock>> idle_;  // by size
  std::unordered_map<void*, MemoryBlock> in_use_;
};

// Memory of the shared pool while it lives.
class PooledMemory {
 public:
  PooledMemory() = default;
  // Throws std::bad_alloc.
  explicit PooledMemory(size_t bytes);
  ~PooledMemory() {
    if (data_ != nullptr) MemoryPool::Shared().Give(data_);
  }
  PooledMemory(PooledMemory&& other) noexcept { *this = std::move(other); }
  PooledMemory& operator=(PooledMemory&& other) noexcept {
    std::swap(data_, other.data_);
    return *this;
  }

  char* data() const { return static_cast<char*>(data_); }

 private:
  void* data_ = nullptr;
};

}  // namespace embedra::internal

#endif  // EMBEDRA_CORE_MEMORY_POOL_H_
