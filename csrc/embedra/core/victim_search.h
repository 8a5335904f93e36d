// VictimSearch: which records of a table go first.
//
// Records are in a total order: by use (recency or frequency, see
// EvictionOrder), then by key. The search finds the last of the `count` lowest,
// the *threshold*, in one array of scores, 8 bytes a record; the victims are
// then the records up to the threshold, and come out in order of position:
//
//   scores of all records  --nth_element-->  the score of the threshold
//   keys of its ties       --nth_element-->  the key of the threshold
//   two walks over the records: count the victims of each range, list them
//
// What it finds depends on the records alone, not on threads.

#ifndef EMBEDRA_CORE_VICTIM_SEARCH_H_
#define EMBEDRA_CORE_VICTIM_SEARCH_H_

#include <cstdint>

#include "embedra/core/buffer.h"
#include "embedra/core/parallel.h"
#include "embedra/core/record_store.h"
#include "embedra/core/table.h"

namespace embedra::internal {

class VictimSearch {
 public:
  VictimSearch() = default;
  // Makes room for a search among `records` that finds `count`. Throws
  // std::bad_alloc.
  VictimSearch(int64_t records, int64_t count)
      : scores_(records), positions_(count), order_(count) {}

  // Finds the `count` lowest of the live records among positions [0, bound),
  // leaving out those whose mark is `spared`. Cannot fail.
  //
  // PRECONDITION: there is room, and nobody writes to the records.
  void Find(const RecordStore& store, int64_t bound, EvictionOrder order,
            uint32_t spared, int64_t count, const ParallelFor& parallel);

  // What was found, in ascending order of position.
  int64_t count() const { return count_; }
  uint32_t position(int64_t i) const { return positions_[i]; }
  // How many runs of neighbours the positions make.
  int64_t runs() const;

  // Room for the hash of each victim's key, to take it out of the index with.
  void set_hash(int64_t i, uint64_t hash) { scores_[i] = hash; }
  uint64_t hash(int64_t i) const { return scores_[i]; }
  // Sorts the victims by shard of their hashes: those of shard s are
  // `ordered(begins[s] .. begins[s + 1])`.
  void OrderByShard(int64_t* begins);
  int64_t ordered(int64_t at) const { return order_[at]; }

 private:
  static constexpr int kRanges = 256;

  struct Walk;
  template <typename Select, typename Number>
  int64_t Gather(const Walk& walk, const Select& select, const Number& number);
  template <typename Select>
  void List(const Walk& walk, const Select& select);

  Buffer<uint64_t> scores_;  // then hashes
  Buffer<uint32_t> positions_;
  Buffer<uint32_t> order_;
  int64_t count_ = 0;
};

}  // namespace embedra::internal

#endif  // EMBEDRA_CORE_VICTIM_SEARCH_H_
