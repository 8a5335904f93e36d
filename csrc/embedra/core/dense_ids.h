// DenseIds: numbers the distinct values of a sequence 0, 1, 2, ... in order of
// first appearance.
//
// Open addressing over ids (0 marks a free entry, so id + 1 is stored); the
// values lie beside, indexed by id. The caller owns the memory, so that one
// scratch serves many small sequences and nothing is allocated in a thread's
// body.

#ifndef EMBEDRA_CORE_DENSE_IDS_H_
#define EMBEDRA_CORE_DENSE_IDS_H_

#include <cstdint>
#include <cstring>

#include "embedra/core/hash.h"

namespace embedra::internal {

class DenseIds {
 public:
  // Entries of scratch that `count` values need: a power of two, half full.
  static int64_t TableSize(int64_t count) {
    int64_t size = 16;
    while (size < 2 * count) size *= 2;
    return size;
  }

  // Uses `table` (TableSize(count) entries) and `values` (count entries).
  DenseIds(int64_t count, uint32_t* table, int64_t* values)
      : mask_(static_cast<uint64_t>(TableSize(count)) - 1),
        table_(table),
        values_(values) {
    std::memset(table, 0, (mask_ + 1) * sizeof(uint32_t));
  }

  // The id of `value`: a new one, equal to the former size(), if it is new.
  uint32_t FindOrAdd(int64_t value) {
    uint64_t at = HashKey(value) & mask_;
    for (; table_[at] != 0; at = (at + 1) & mask_) {
      if (values_[table_[at] - 1] == value) return table_[at] - 1;
    }
    values_[size_] = value;
    table_[at] = ++size_;
    return size_ - 1;
  }

  uint32_t size() const { return size_; }

 private:
  uint64_t mask_;
  uint32_t* table_;
  int64_t* values_;
  uint32_t size_ = 0;
};

}  // namespace embedra::internal

#endif  // EMBEDRA_CORE_DENSE_IDS_H_
