// RecordStore: the memory that holds the records of a table.
//
//   segments_:  [ 0 ]      [ 1 ]      [ 2 ]   ...
//                 |          |          |
//                 v          v          v
//              records    records    records       2^shift records each
//
//   record:     [ header 24 B ][ row ][ pad to 4 ][ slot 0 ][ slot 1 ] ...
//               ^ stride: a multiple of 8
//
// All segments hold the same number of records, a power of two chosen when the
// table is made so that a segment of bare rows takes some 4 to 8 MiB. Growth
// adds a segment and moves nothing; a change of slots rewrites one segment at a
// time, so that it needs one segment of memory more than the final size.
// (Segments of doubling size would need half the table more.) Memory is
// reserved by segment and committed by page, as positions are first used.
//
// The store knows positions and bytes; which positions are in use is the
// business of PositionAllocator, which key is where that of KeyIndex.

#ifndef EMBEDRA_CORE_RECORD_STORE_H_
#define EMBEDRA_CORE_RECORD_STORE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "embedra/core/memory_block.h"
#include "embedra/core/table.h"

namespace embedra::internal {

struct RecordHeader {
  int64_t key;
  uint32_t frequency;  // training lookups; sticks at its maximum
  uint32_t last_step;  // table step at the last of them, or when the record
                       // was made; sticks likewise
  uint32_t live;       // 1 while the record belongs to `key`, else 0
  uint32_t mark;       // see Table::Impl::Mark()
};
static_assert(sizeof(RecordHeader) == 24, "part of the memory budget");

// Where the parts of a record lie.
struct RecordLayout {
  static constexpr size_t kRowOffset = sizeof(RecordHeader);

  int64_t dim = 0;
  RowType row_type = RowType::kFloat32;
  size_t row_bytes = 0;
  size_t slots_offset = 0;
  size_t stride = 0;
  int64_t slot_width = 0;  // elements of all slots together
  std::vector<SlotSpec> slots;
  std::vector<int64_t> slot_begins;  // first element of each slot
  std::vector<float> slot_initials;  // slot_width elements of a new record
  bool slots_start_at_zero = true;

  RecordLayout() = default;
  RecordLayout(int64_t dim, RowType row_type,
               const std::vector<SlotSpec>& slots);

  // Index of the slot called `name`, or -1.
  int FindSlot(const std::string& name) const;
};

inline RecordHeader& HeaderOf(char* record) {
  return *reinterpret_cast<RecordHeader*>(record);
}
inline const RecordHeader& HeaderOf(const char* record) {
  return *reinterpret_cast<const RecordHeader*>(record);
}

// Asks for the first `bytes` of a record.
inline void PrefetchRecord(const char* record, size_t bytes) {
  constexpr size_t kLine = 64;
  // To the end of the line that holds the last byte.
  const char* last = record + bytes - 1;
  for (const char* p = record; p < last; p += kLine) __builtin_prefetch(p);
  __builtin_prefetch(last);
}

// Counts `times` training lookups at `step`. Lookups run together, so this is
// atomic; the frequency sticks at its maximum.
inline void CountLookups(char* record, uint32_t times, uint32_t step) {
  constexpr uint32_t kMax = 0xffffffffu;
  RecordHeader& header = HeaderOf(record);
  uint32_t count = __atomic_load_n(&header.frequency, __ATOMIC_RELAXED);
  if (count < kMax / 2 && times < kMax / 4) {
    // Too far from the end for all the threads there are to get past it.
    __atomic_fetch_add(&header.frequency, times, __ATOMIC_RELAXED);
  } else {
    while (!__atomic_compare_exchange_n(
        &header.frequency, &count, count > kMax - times ? kMax : count + times,
        true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
  }
  __atomic_store_n(&header.last_step, step, __ATOMIC_RELAXED);
}

class RecordStore {
 public:
  explicit RecordStore(RecordLayout layout);

  const RecordLayout& layout() const { return layout_; }
  // Positions that have memory: [0, capacity()).
  int64_t capacity() const {
    return static_cast<int64_t>(segments_.size()) << shift_;
  }

  char* Record(uint32_t position) const {
    return bases_[position >> shift_] +
           static_cast<size_t>(position & mask_) * stride_;
  }
  float* Slots(char* record) const {
    return reinterpret_cast<float*>(record + layout_.slots_offset);
  }

  // Gives memory to positions [0, positions). False when memory is short;
  // positions that had memory keep it.
  bool Reserve(int64_t positions);

  // Makes every record dead and gives the memory back, keeping positions.
  void Discard();

  // Rewrites the live records among [0, bound) with other slots: a slot of the
  // same name and width keeps its contents, others start at their initial
  // value. False, with nothing changed, when address space is short.
  bool SetSlots(const std::vector<SlotSpec>& slots, int64_t bound);

 private:
  MemoryBlock NewSegment(const RecordLayout& layout, size_t index) const;
  void RewriteSegment(const RecordLayout& layout, const std::vector<int>& from,
                      const char* old_base, char* new_base,
                      int64_t count) const;

  RecordLayout layout_;
  int shift_;
  uint32_t mask_;
  size_t stride_;
  std::vector<MemoryBlock> segments_;
  std::vector<char*> bases_;  // segments_[i].data(), one load away
};

}  // namespace embedra::internal

#endif  // EMBEDRA_CORE_RECORD_STORE_H_
