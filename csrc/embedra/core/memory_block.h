// MemoryBlock: a zeroed stretch of memory, aligned to a cache line, that costs
// nothing until it is touched.
//
// Small blocks come from the heap; large ones are mapped, aligned to a page or
// a huge page.

#ifndef EMBEDRA_CORE_MEMORY_BLOCK_H_
#define EMBEDRA_CORE_MEMORY_BLOCK_H_

#include <cstddef>

namespace embedra::internal {

class MemoryBlock {
 public:
  static constexpr size_t kHugePage = size_t{2} << 20;
  // For `huge_from`: keep ordinary pages throughout.
  static constexpr size_t kNoHugePages = ~size_t{0};

  // Blocks below this size come from the heap.
  static constexpr size_t kMapped = size_t{64} << 10;

  MemoryBlock() = default;
  ~MemoryBlock() { Free(); }
  MemoryBlock(MemoryBlock&& other) noexcept { Swap(other); }
  MemoryBlock& operator=(MemoryBlock&& other) noexcept {
    Swap(other);
    return *this;
  }

  // Reserves `bytes` of address space; the kernel supplies zeroed pages at the
  // first touch. From byte `huge_from` on it is asked for huge pages, which
  // spare random access most misses of the address-translation cache. The block
  // is empty when no address space is left.
  static MemoryBlock Reserve(size_t bytes, size_t huge_from) noexcept;

  explicit operator bool() const { return data_ != nullptr; }
  char* data() const { return data_; }
  size_t bytes() const { return bytes_; }

  // Gives the pages back; the block reads as zeros again.
  void Discard();

 private:
  void Free() noexcept;
  void Swap(MemoryBlock& other) noexcept;

  char* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace embedra::internal

#endif  // EMBEDRA_CORE_MEMORY_BLOCK_H_
