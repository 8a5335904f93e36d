// Table::Impl::Upsert: the one way in which records come into being.
//
// The keys of a batch are grouped by shard beforehand, each key once; then,
// under the write lock:
//
//   1. Locate:   which keys are there, by shard in parallel
//   2. PlanEviction, MakeRoom: in a bounded table, what must go; positions for
//                the absent ones, memory for their records, room in the shards
//                of the index; all that can fail is here
//   3. by shard in parallel: create the absent records, visit every record
//
// Positions are dealt to the shards in order before threads come in, so that
// they, and with them the order of an export, do not depend on the threads.

#ifndef EMBEDRA_CORE_UPSERT_H_
#define EMBEDRA_CORE_UPSERT_H_

#include <algorithm>

#include "embedra/core/batch_probe.h"
#include "embedra/core/table_impl.h"

namespace embedra {

// Calls `visit(shard, group, position, record, is_new)` once for each distinct
// key, from several threads, but from one at a time for a shard. A new record
// has its header and its initial slots; `visit` writes the row. With
// `all_absent` the caller knows that no key is there. With `Bound::kIgnore` the
// caller sees to it that the table does not stay too large.
//
// PRECONDITION: the caller holds the write lock.
template <typename Visit>
Status Table::Impl::Upsert(const internal::Grouping& keys, bool all_absent,
                           const ParallelFor& parallel, const Visit& visit,
                           Bound bound) {
  using internal::HashKey;
  using internal::KeyIndex;
  constexpr int64_t kAhead = 8;
  constexpr int64_t kRecordCostNs = 150;

  UpsertPlan plan;
  Locate(keys, all_absent, &plan, parallel);
  // Records that were never used are zero: slots that start so are left alone.
  const int64_t blank_from = layout().slots_start_at_zero
                                 ? allocator_.bound()
                                 : int64_t{KeyIndex::kNone};
  Status status;
  if (bound == Bound::kKeep) status = PlanEviction(keys, &plan, parallel);
  if (status.ok()) status = MakeRoom(&plan, parallel);
  if (!status.ok()) return status;
  const uint32_t step = RecordStep();

  const int64_t cost = (keys.entries() / keys.parts() + 1) * kRecordCostNs;
  parallel(keys.parts(), cost, [&](int64_t begin, int64_t end) {
    for (int shard = static_cast<int>(begin); shard < end; ++shard) {
      const uint32_t* fresh = plan.positions.data() + plan.new_begins[shard];
      const int64_t last = keys.group_end(shard);
      for (int64_t g = keys.group_begin(shard); g < last; ++g) {
        if (g + kAhead < last) {
          const uint32_t ahead = plan.located[g + kAhead];
          if (ahead == KeyIndex::kNone) {
            index_.Prefetch(HashKey(keys.value(g + kAhead)));
          } else {
            PrefetchPosition(ahead);
          }
        }
        uint32_t position = plan.located[g];
        const bool is_new = position == KeyIndex::kNone;
        if (is_new) {
          position = *fresh++;
          index_.Insert(HashKey(keys.value(g)), position);
        }
        char* record = store_.Record(position);
        if (is_new) {
          internal::HeaderOf(record) = {keys.value(g), 0, step, /*live=*/1,
                                        Mark(0)};
          if (position < blank_from) WriteInitialSlots(record);
        }
        visit(shard, g, position, record, is_new);
      }
    }
  });
  return Status();
}

}  // namespace embedra

#endif  // EMBEDRA_CORE_UPSERT_H_
