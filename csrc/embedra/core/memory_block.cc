#include "embedra/core/memory_block.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace embedra::internal {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kCacheLine = 64;

size_t RoundUp(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

void* Map(size_t bytes) {
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return data == MAP_FAILED ? nullptr : data;
}

// Maps `bytes` at a multiple of the huge page, by mapping more and cutting.
void* MapAligned(size_t bytes) {
  const size_t slack = MemoryBlock::kHugePage;
  char* raw = static_cast<char*>(Map(bytes + slack));
  if (raw == nullptr) return nullptr;
  const size_t head =
      RoundUp(reinterpret_cast<uintptr_t>(raw), MemoryBlock::kHugePage) -
      reinterpret_cast<uintptr_t>(raw);
  if (head > 0) munmap(raw, head);
  if (head < slack) munmap(raw + head + bytes, slack - head);
  return raw + head;
}

}  // namespace

MemoryBlock MemoryBlock::Reserve(size_t bytes, size_t huge_from) noexcept {
  MemoryBlock block;
  if (bytes < kMapped) {
    const size_t size = RoundUp(bytes == 0 ? 1 : bytes, kCacheLine);
    block.data_ = static_cast<char*>(std::aligned_alloc(kCacheLine, size));
    if (block.data_ == nullptr) return block;
    std::memset(block.data_, 0, size);
    block.bytes_ = size;
    return block;
  }
  const size_t size = RoundUp(bytes, kPage);
  if (size < bytes) return block;  // overflow
  const bool huge = huge_from < size && size >= kHugePage;
  void* data = huge ? MapAligned(size) : Map(size);
  if (data == nullptr) return block;
  block.data_ = static_cast<char*>(data);
  block.bytes_ = size;
#ifdef MADV_HUGEPAGE
  if (huge) {
    const size_t from = RoundUp(huge_from, kHugePage);
    // Advice only: a kernel without huge pages declines, and nothing is lost.
    if (from < size) madvise(block.data_ + from, size - from, MADV_HUGEPAGE);
  }
#endif
  return block;
}

void MemoryBlock::Discard() {
  if (data_ == nullptr) return;
  if (bytes_ < kMapped || madvise(data_, bytes_, MADV_DONTNEED) != 0) {
    std::memset(data_, 0, bytes_);
  }
}

void MemoryBlock::Free() noexcept {
  if (bytes_ < kMapped) {
    std::free(data_);
  } else {
    munmap(data_, bytes_);
  }
  data_ = nullptr;
  bytes_ = 0;
}

void MemoryBlock::Swap(MemoryBlock& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
}

}  // namespace embedra::internal
