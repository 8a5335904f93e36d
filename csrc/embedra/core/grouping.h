// Grouping: which entries of a batch hold the same value.
//
// A batch of keys or positions repeats itself: popular ids come many times. The
// table must insert a key once, and apply a row's summed gradient once. A
// grouping splits the batch into parts by a hash of the value, and each part
// into groups of equal values:
//
//   values:   7 4 7 9 4 7              (entries 0..5)
//   part 0:   value 4: members 1 4
//   part 1:   value 7: members 0 2 5   value 9: member 3
//
// Groups are in order of first appearance in the part, members in order of
// appearance in the batch, and the parts depend on the batch alone: whatever is
// computed by group comes out the same on any number of threads, to the bit.
// Parts share nothing, so threads take them without locks.

#ifndef EMBEDRA_CORE_GROUPING_H_
#define EMBEDRA_CORE_GROUPING_H_

#include <cstdint>

#include "embedra/core/buffer.h"
#include "embedra/core/parallel.h"

namespace embedra::internal {

class Grouping {
 public:
  // Most entries in a batch.
  static constexpr int64_t kMaxEntries = int64_t{1} << 31;

  // The entries of equal keys. Parts are the shards of the index. If `entries`
  // is not null, only those `n` entries of `keys` take part. Throws
  // std::bad_alloc.
  static Grouping OfKeys(const int64_t* keys, const uint32_t* entries,
                         int64_t n, const ParallelFor& parallel);
  // The entries of equal positions; negative positions take no part.
  static Grouping OfPositions(const int64_t* positions, int64_t n,
                              const ParallelFor& parallel);

  int parts() const { return parts_; }
  // Entries that take part, of the batch or of one part.
  int64_t entries() const { return part_begins_[parts_]; }
  int64_t entries(int part) const {
    return part_begins_[part + 1] - part_begins_[part];
  }

  // Groups of part p are numbered [group_begin(p), group_end(p)). Numbers are
  // below entries(), with gaps between parts: use them to index scratch arrays.
  int64_t group_begin(int part) const { return part_begins_[part]; }
  int64_t group_end(int part) const {
    return part_begins_[part] + group_counts_[part];
  }
  int64_t num_groups() const;

  int64_t value(int64_t group) const { return values_[group]; }
  const int64_t* values() const { return values_.data(); }
  // Members of a group: `count(group)` entries of the batch from `members`.
  const uint32_t* members(int64_t group) const {
    return members_.data() + member_begins_[group];
  }
  int64_t count(int64_t group) const { return counts_[group]; }

 private:
  Grouping() = default;

  template <typename PartOf>
  void Partition(int64_t n, const uint32_t* entries, const PartOf& part_of,
                 const ParallelFor& parallel);
  void GroupPart(const int64_t* values, int part, uint32_t* table,
                 uint32_t* ids);
  void GroupParts(const int64_t* values, const ParallelFor& parallel);

  int parts_ = 0;
  Buffer<int64_t> part_begins_;     // parts + 1
  Buffer<int64_t> group_counts_;    // parts
  Buffer<uint32_t> order_;          // entries by part, each part in order
  Buffer<uint32_t> members_;        // entries by part and group
  Buffer<int64_t> values_;          // by group
  Buffer<uint32_t> member_begins_;  // by group, into members_
  Buffer<uint32_t> counts_;         // by group
};

}  // namespace embedra::internal

#endif  // EMBEDRA_CORE_GROUPING_H_
