#include "embedra/core/memory_pool.h"

#include <new>

namespace embedra::internal {
namespace {

constexpr size_t kMostIdle = size_t{256} << 20;

// Sizes in steps of an eighth to a quarter, so that batches of about the same
// size use the same blocks.
size_t ClassOf(size_t bytes) {
  size_t step = MemoryPool::kLeast / 4;
  while (bytes > 8 * step) step *= 2;
  const size_t rounded = (bytes + step - 1) / step * step;
  return rounded < MemoryPool::kLeast ? MemoryPool::kLeast : rounded;
}

}  // namespace

MemoryPool& MemoryPool::Shared() {
  static MemoryPool* const pool = new MemoryPool(kMostIdle);
  return *pool;
}

void* MemoryPool::Take(size_t bytes) noexcept {
  // Nothing is so large; the steps above would overflow.
  if (bytes > ~size_t{0} / 4) return nullptr;
  const size_t size = ClassOf(bytes);
  try {
    MemoryBlock block;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      const auto found = idle_.find(size);
      if (found != idle_.end() && !found->second.empty()) {
        block = std::move(found->second.back());
        found->second.pop_back();
        idle_bytes_ -= block.bytes();
      }
    }
    if (!block) block = MemoryBlock::Reserve(size, 0);
    if (!block) return nullptr;
    void* const data = block.data();
    std::lock_guard<std::mutex> lock(mutex_);
    in_use_.emplace(data, std::move(block));
    return data;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void MemoryPool::Give(void* data) noexcept {
  MemoryBlock block;  // unmapped behind the lock, unless it is kept
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = in_use_.find(data);
  if (found == in_use_.end()) return;
  block = std::move(found->second);
  in_use_.erase(found);
  if (idle_bytes_ + block.bytes() > most_idle_) return;
  try {
    const size_t bytes = block.bytes();
    idle_[bytes].push_back(std::move(block));
    idle_bytes_ += bytes;
  } catch (const std::bad_alloc&) {
    return;  // not kept then
  }
}

size_t MemoryPool::idle_bytes() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return idle_bytes_;
}

PooledMemory::PooledMemory(size_t bytes)
    : data_(MemoryPool::Shared().Take(bytes)) {
  if (data_ == nullptr) throw std::bad_alloc();
}

}  // namespace embedra::internal
