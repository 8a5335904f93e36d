// Table::Impl: the state of a table and the pieces its methods share.
//
//   keys --KeyIndex--> positions --RecordStore--> records
//                          ^
//                  PositionAllocator
//
// The methods are spread over files by what they do: table.cc (life, facts),
// table_lookup.cc, table_pooled.cc, table_write.cc (by key), table_update.cc
// (optimizer steps), table_gradients.cc, table_records.cc (whole records),
// table_restrict.cc (bounds).
//
// # Locking
//
// `mutex_` guards index, store, allocator, initializer and generation. Whatever
// can be worked out before (grouping of equal keys, sums) is, to hold it
// shortly. Under the shared lock two fields of a record are written, with
// atomic operations: frequency and last_step. Counters are atomic and need no
// lock.
//
// # Failure
//
// Every method first validates, then obtains the memory it may need, then
// changes the table; the last part cannot fail. std::bad_alloc is turned into a
// Status in table.cc.

#ifndef EMBEDRA_CORE_TABLE_IMPL_H_
#define EMBEDRA_CORE_TABLE_IMPL_H_

#include <atomic>
#include <initializer_list>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "embedra/core/grouping.h"
#include "embedra/core/key_index.h"
#include "embedra/core/pending_gradients.h"
#include "embedra/core/position_allocator.h"
#include "embedra/core/record_store.h"
#include "embedra/core/row_kernels.h"
#include "embedra/core/shared_mutex.h"
#include "embedra/core/table.h"
#include "embedra/core/victim_search.h"

namespace embedra {

class Table::Impl {
 public:
  explicit Impl(const TableOptions& options);

  // The methods of Table; see table.h.
  const TableOptions& options() const { return options_; }
  int64_t size() const { return size_.load(std::memory_order_relaxed); }
  int64_t position_bound() const {
    return bound_.load(std::memory_order_relaxed);
  }
  int64_t step() const { return step_.load(std::memory_order_relaxed); }
  void set_step(int64_t step) { step_.store(step, std::memory_order_relaxed); }
  std::vector<SlotSpec> slots() const;
  Statistics statistics() const;
  Status SetInitializer(const InitializerSpec& initializer, uint64_t seed,
                        const std::string& stream_name);
  void GetInitializer(InitializerSpec* initializer, uint64_t* seed,
                      std::string* stream_name) const;
  Status Keys(const int64_t* positions, int64_t n, int64_t* keys,
              bool* alive) const;

  Status Find(const int64_t* keys, int64_t n, MissingRow missing,
              const void* default_row, void* rows, int64_t* positions,
              bool* found, const ParallelFor& parallel) const;
  Status FindOrInsert(const int64_t* keys, int64_t n, void* rows,
                      int64_t* positions, bool* found,
                      const ParallelFor& parallel);
  Status FindPooled(const Bags& bags, MissingRow missing,
                    const void* default_row, float* pooled, int64_t* positions,
                    const ParallelFor& parallel) const;
  Status FindOrInsertPooled(const Bags& bags, float* pooled, int64_t* positions,
                            const ParallelFor& parallel);
  Status FindMissing(const int64_t* keys, int64_t n,
                     std::vector<int64_t>* missing) const;
  Status Assign(const int64_t* keys, int64_t n, const void* rows,
                bool only_missing, const ParallelFor& parallel);
  Status Accumulate(const int64_t* keys, int64_t n, const float* deltas,
                    const ParallelFor& parallel);
  Status Remove(const int64_t* keys, int64_t n, int64_t* removed);
  Status Restrict(int64_t max_records, EvictionOrder order,
                  std::vector<int64_t>* removed, const ParallelFor& parallel);
  Status CountUses(const int64_t* keys, int64_t n, const ParallelFor& parallel);
  Status Uses(const int64_t* keys, int64_t n, int64_t* frequencies,
              int64_t* last_steps, bool* found,
              const ParallelFor& parallel) const;
  Status Clear();
  Status Reserve(int64_t capacity);
  Status SetSlots(const std::vector<SlotSpec>& slots,
                  std::vector<std::string>* dropped);
  Status Update(const RowOptimizer& optimizer, const int64_t* positions,
                int64_t n, const float* grads, const ParallelFor& parallel,
                std::vector<std::string>* dropped_slots);
  Status Deduplicate(const int64_t* positions, int64_t n, const float* grads,
                     const GradientOutput& output) const;
  Status PooledGradient(const Bags& bags, const int64_t* positions,
                        const float* pooled_grads, const GradientOutput& output,
                        const ParallelFor& parallel) const;
  Status ReadRecords(const int64_t* positions, int64_t n,
                     const std::vector<std::string>& slot_names, float* rows,
                     const std::vector<float*>& slots,
                     const ParallelFor& parallel) const;
  Status WriteRecords(const int64_t* positions, int64_t n,
                      const std::vector<std::string>& slot_names,
                      const float* rows, const std::vector<const float*>& slots,
                      const ParallelFor& parallel);
  Status Export(int64_t* cursor, int64_t max_records, RecordBatch* batch) const;
  Status Import(const RecordColumns& records, const ParallelFor& parallel);
  Status AccumulateGradients(const int64_t* positions, int64_t n,
                             const float* grads);
  Status TakeGradients(std::vector<int64_t>* positions,
                       std::vector<float>* grads);

 private:
  using SharedLock = std::shared_lock<internal::SharedMutex>;

  // Holds the table exclusively and counts a mutating call.
  class WriteLock {
   public:
    explicit WriteLock(Impl& impl) : lock_(impl.mutex_) {
      ++impl.generation_;
      impl.spared_ = 0;
    }

   private:
    std::unique_lock<internal::SharedMutex> lock_;
  };

  const internal::RecordLayout& layout() const { return store_.layout(); }
  size_t row_type_index() const {
    return static_cast<size_t>(options_.row_type);
  }
  bool is_float32() const { return options_.row_type == RowType::kFloat32; }
  Status Invalid(const std::string& message) const {
    return Status::InvalidArgument("table '" + options_.name + "': " + message);
  }
  Status OutOfMemory(const std::string& what) const {
    return Status::ResourceExhausted("table '" + options_.name +
                                     "': not enough memory " + what);
  }

  // Refuses a negative or excessive `n`, and null `pointers` when n > 0.
  Status CheckBatch(int64_t n,
                    std::initializer_list<const void*> pointers) const;
  Status CheckBags(const Bags& bags) const;
  Status CheckSlots(const std::vector<SlotSpec>& slots) const;

  // ---- Records (table_records.cc) ----

  // The record at `position`, or null if there is no live one.
  char* LiveRecord(int64_t position) const {
    if (position < 0 || position >= store_.capacity()) return nullptr;
    char* record = store_.Record(static_cast<uint32_t>(position));
    return internal::HeaderOf(record).live != 0 ? record : nullptr;
  }
  // Asks for the whole record at `position`, if there can be one.
  void PrefetchPosition(int64_t position) const {
    if (position < 0 || position >= store_.capacity()) return;
    internal::PrefetchRecord(store_.Record(static_cast<uint32_t>(position)),
                             layout().stride);
  }
  // Writes the initial row of `key` in the row type. `scratch` has dim() floats
  // (unused for float32 rows).
  void WriteInitialRow(int64_t key, void* row, float* scratch) const;
  void WriteInitialSlots(char* record) const;
  // step() as records keep it.
  uint32_t RecordStep() const;
  // Sets the slots under the write lock.
  Status SetSlotsLocked(const std::vector<SlotSpec>& slots,
                        std::vector<std::string>* dropped);

  // ---- Lookups (table_lookup.cc, table_pooled.cc) ----

  // Probes and copies keys [begin, end); returns how many are absent. `scratch`
  // as for WriteInitialRow.
  struct LookupCall;
  int64_t LookupRange(const LookupCall& call, int64_t begin, int64_t end,
                      float* scratch) const;
  void CountFound(int64_t found, int64_t absent) const;
  struct PooledCall;
  int64_t PoolRange(const PooledCall& call, int64_t begin, int64_t end,
                    float* scratch) const;
  void PoolByPosition(const Bags& bags, int64_t bag, const int64_t* positions,
                      float* pooled) const;
  Status InsertForBags(const Bags& bags, const std::vector<int64_t>& touched,
                       uint64_t generation, float* pooled, int64_t* positions,
                       const ParallelFor& parallel);

  // ---- Writes by key (upsert.h) ----

  // What Upsert knows of a batch before it changes anything.
  struct UpsertPlan {
    internal::Buffer<uint32_t> located;    // by group; kNone: absent
    internal::Buffer<uint32_t> positions;  // for the new records, by shard
    int64_t new_begins[internal::KeyIndex::kShards + 1];
    internal::VictimSearch victims;  // records to drop
  };
  void Locate(const internal::Grouping& keys, bool all_absent, UpsertPlan* plan,
              const ParallelFor& parallel) const;
  Status MakeRoom(UpsertPlan* plan, const ParallelFor& parallel);
  // See upsert.h.
  enum class Bound { kKeep, kIgnore };
  template <typename Visit>
  Status Upsert(const internal::Grouping& keys, bool all_absent,
                const ParallelFor& parallel, const Visit& visit,
                Bound bound = Bound::kKeep);

  // ---- Bounds (table_restrict.cc) ----

  // The mark of this mutating call, or of one to come: that of records which
  // the call made or must not drop.
  uint32_t Mark(uint64_t ahead) const {
    return static_cast<uint32_t>(generation_ + ahead);
  }
  // Whether the table may get too large by `added` records.
  bool MayOverflow(int64_t added) const {
    return options_.max_capacity > 0 &&
           index_.size() + added > options_.max_capacity;
  }
  // Keeps a record from being dropped in this call.
  void Spare(char* record) {
    internal::RecordHeader& header = internal::HeaderOf(record);
    spared_ += header.mark != Mark(0);
    header.mark = Mark(0);
  }
  // Spares the records at `positions[i]`, where they are those of `keys[i]`.
  void SpareBatch(const int64_t* keys, const int64_t* positions, int64_t n);
  // Finds what must go so that the plan's new records fit.
  Status PlanEviction(const internal::Grouping& keys, UpsertPlan* plan,
                      const ParallelFor& parallel);
  // Drops records because of the bound. `seen` is false if some may have been
  // made in this call. PRECONDITION: the allocator has room for them.
  void Evict(internal::VictimSearch* victims, bool seen,
             const ParallelFor& parallel);
  // Drops records; `keys` may be null. PRECONDITION: as for Evict.
  void Drop(internal::VictimSearch* victims, bool seen, int64_t* keys,
            const ParallelFor& parallel);

  // ---- Gradients (table_gradients.cc, table_update.cc) ----

  // Notes in `alive` (by group) which groups have a live record; returns how
  // many have none.
  int64_t MarkAlive(const internal::Grouping& groups,
                    internal::Buffer<uint8_t>* alive,
                    const ParallelFor& parallel) const;
  float ClipFactor(const internal::Grouping& groups, const float* grads,
                   const RowOptimizer& optimizer,
                   const ParallelFor& parallel) const;
  using StepFn = void (*)(const internal::StepNumbers&, char* const*,
                          const float* const*, int64_t, float*);
  // Returns how many rows it updated.
  int64_t ApplyParts(const internal::Grouping& groups, const float* grads,
                     const internal::StepNumbers& numbers, StepFn step,
                     int first_part, int last_part, float* scratch);
  template <typename RowOf>
  Status SumGroups(const internal::Grouping& groups,
                   const internal::Buffer<uint8_t>& alive, int64_t n,
                   const GradientOutput& output, const ParallelFor& parallel,
                   const RowOf& row_of) const;

  const TableOptions options_;
  // What new rows are drawn from; guarded by mutex_.
  InitializerSpec initializer_spec_;
  uint64_t seed_;
  std::string stream_name_;
  RowInitializer initializer_;
  const internal::RowKernels& kernels_;
  const size_t row_bytes_;

  mutable internal::SharedMutex mutex_;
  internal::KeyIndex index_;
  internal::RecordStore store_;
  internal::PositionAllocator allocator_;
  uint64_t generation_ = 0;  // mutating calls so far
  int64_t spared_ = 0;       // records that this call must not drop

  std::mutex pending_mutex_;  // taken after mutex_
  internal::PendingGradients pending_;

  std::atomic<int64_t> size_{0};
  std::atomic<int64_t> bound_{0};
  std::atomic<int64_t> step_{0};
  std::atomic<int64_t> inserts_{0};
  std::atomic<int64_t> removes_{0};
  std::atomic<int64_t> evictions_{0};
  std::atomic<int64_t> updates_{0};
  mutable std::atomic<int64_t> hits_{0};
  mutable std::atomic<int64_t> misses_{0};
  mutable std::atomic<int64_t> stale_gradients_{0};
};

}  // namespace embedra

#endif  // EMBEDRA_CORE_TABLE_IMPL_H_
