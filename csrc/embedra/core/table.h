// Table: a growable map from a 64-bit key to one record.
//
// # Record layout
//
//   [ header: 24 bytes ][ row: dim x row dtype ][ slot 0 ][ slot 1 ] ...
//
// The header holds the key, the number of training lookups, the table's step
// at the last of them, and flags. The row has the table's dtype; slots (the
// state that an optimizer keeps for each row) are float32. Everything about a
// key is contiguous, so that one probe and one or two cache misses reach it.
//
// # Positions
//
// A record lives at a *position*, a dense integer from 0. Positions are what
// gradients carry: they stay valid while the index grows. A position freed by
// Remove() is handed out again only after `kReuseDelay` further mutating
// calls, so that a gradient still in flight can only meet a dead record (which
// is skipped and counted in `Statistics::stale_gradients`), never a stranger.
//
// # Bounds
//
// With `TableOptions::max_capacity`, a call that creates records first drops
// those that are lowest in the order `TableOptions::eviction`, and so leaves at
// most `max_capacity`. Keys of the call's own batch are never dropped; a batch
// with more distinct keys than fit is an error. As the search costs as much for
// one record as for many, a sixteenth of the bound is dropped at once. Import()
// alone keeps exactly the highest of the table's and the batch's records.
// Positions of dropped records wait like those of removed ones: the memory of a
// bounded table is that of its bound and of what some `kReuseDelay` calls add.
//
// # Thread safety
//
// All methods may be called concurrently. One call is a batch, not a
// transaction across calls. Readers share a lock, writers exclude; each record
// is read and written whole. Neither side starves the other.
//
// # Failure
//
// A call that returns an error has changed nothing but counters (hits, misses,
// and the frequencies of records that it found before memory ran out).
//
// This header knows nothing of TensorFlow. Work is split over threads through
// `ParallelFor`, which the caller supplies.

#ifndef EMBEDRA_CORE_TABLE_H_
#define EMBEDRA_CORE_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "embedra/core/initializer.h"
#include "embedra/core/parallel.h"
#include "embedra/core/row_optimizer.h"
#include "embedra/core/status.h"

namespace embedra {

enum class RowType { kFloat32, kBFloat16, kFloat16 };

// Bytes of one element of a row.
size_t SizeOf(RowType type);

// One float32 column group kept beside every row.
struct SlotSpec {
  std::string name;
  int64_t width = 0;     // dim, or 1 for a scalar per row
  float initial = 0.0f;  // value of every element in a new record

  friend bool operator==(const SlotSpec& a, const SlotSpec& b) {
    return a.name == b.name && a.width == b.width && a.initial == b.initial;
  }
};

// What makes a record go before another. Ties go by key, smaller keys first.
enum class EvictionOrder {
  kRecency,    // smallest last step, then smallest frequency
  kFrequency,  // smallest frequency, then smallest last step
};

struct TableOptions {
  std::string name;  // used in messages, and to derive initial rows
  int64_t dim = 0;   // elements in a row
  RowType row_type = RowType::kFloat32;
  InitializerSpec initializer;
  uint64_t seed = 0;
  int64_t initial_capacity = 0;  // records to make room for up front
  std::vector<SlotSpec> slots;
  int64_t max_capacity = 0;  // most records, 0 for no bound
  EvictionOrder eviction = EvictionOrder::kRecency;  // in bounded tables

  // Returns an error that names the table and the wrong field.
  Status Validate() const;
};

struct Statistics {
  int64_t size = 0;             // live records
  int64_t capacity = 0;         // records the index takes before it grows
  int64_t bytes = 0;            // taken by index and records
  int64_t inserts = 0;          // records created since the table was made
  int64_t removes = 0;          // records removed
  int64_t evictions = 0;        // records dropped to keep to max_capacity
  int64_t hits = 0;             // keys found by lookups
  int64_t misses = 0;           // keys not found by lookups
  int64_t updates = 0;          // rows written by Update and WriteRecords
  int64_t stale_gradients = 0;  // gradients dropped as their record was gone
  double load_factor = 0.0;     // occupied share of the index
};

// What a read-only lookup returns for an absent key.
enum class MissingRow { kInitial, kDefault };

enum class Combiner { kSum, kMean, kSqrtN };

// A batch of ids grouped in bags, for pooled lookups. Bag `b` holds the keys
// `row_splits[b] .. row_splits[b + 1]`. `weights` may be null.
struct Bags {
  const int64_t* keys = nullptr;
  const float* weights = nullptr;
  const int64_t* row_splits = nullptr;  // shape (num_bags + 1)
  int64_t num_bags = 0;
  Combiner combiner = Combiner::kSum;
};

// Records in columns, as Export() gives and Import() takes them.
struct RecordBatch {
  std::vector<int64_t> keys;
  std::vector<char> rows;    // n x dim elements of the table's dtype
  std::vector<float> slots;  // n x (sum of slot widths)
  std::vector<int64_t> frequencies;
  std::vector<int64_t> last_steps;
};

// Borrowed columns for Import(); `slots`, `frequencies` and `last_steps` may be
// null and then take their initial values.
struct RecordColumns {
  int64_t size = 0;
  const int64_t* keys = nullptr;
  const void* rows = nullptr;
  const float* slots = nullptr;
  const int64_t* frequencies = nullptr;
  const int64_t* last_steps = nullptr;
};

// Makes room for what Deduplicate() or PooledGradient() found: `count`
// positions and (count x dim) sums, which may be uninitialised. Called once, on
// the thread of the caller; an error that it returns ends the call.
using GradientOutput =
    std::function<Status(int64_t count, int64_t** unique, float** sums)>;

class Table {
 public:
  // Position of an absent key.
  static constexpr int64_t kNoPosition = -1;
  // Mutating calls before a freed position is handed out again.
  static constexpr int64_t kReuseDelay = 64;

  // Returns an error if `options` do not validate or memory is short.
  static Status Create(const TableOptions& options,
                       std::unique_ptr<Table>* table);
  ~Table();
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  const TableOptions& options() const;  // `slots` as given at creation
  int64_t dim() const;
  RowType row_type() const;
  int64_t size() const;
  // One more than the largest position ever used; a bound for positions.
  int64_t position_bound() const;
  Statistics statistics() const;
  // The table's clock: number of optimizer steps seen. Stored in records as
  // `last_step` by training lookups and in new records.
  int64_t step() const;
  void set_step(int64_t step);
  std::vector<SlotSpec> slots() const;

  // Replaces what new rows are drawn from. `stream_name` takes the place of the
  // table's name in the draw, so that a table restored under another name goes
  // on giving the same initial rows. Existing rows are not touched.
  Status SetInitializer(const InitializerSpec& initializer, uint64_t seed,
                        const std::string& stream_name);

  // What new rows are drawn from; arguments may be null.
  void GetInitializer(InitializerSpec* initializer, uint64_t* seed,
                      std::string* stream_name) const;

  // Keys of the records at `positions`; `alive[i]` is false, and `keys[i]` 0,
  // where the record is gone or the position is out of range.
  Status Keys(const int64_t* positions, int64_t n, int64_t* keys,
              bool* alive) const;

  // Copies the rows of `keys[0, n)` to `rows` (n x dim of the row dtype).
  // Changes nothing but the hit and miss counters. Absent keys get
  // `default_row` (dim elements of the row dtype) with `kDefault`, the row they
  // would start with under `kInitial`; their position is kNoPosition.
  // `positions` and `found` may be null.
  Status Find(const int64_t* keys, int64_t n, MissingRow missing,
              const void* default_row, void* rows, int64_t* positions,
              bool* found, const ParallelFor& parallel) const;

  // As Find, but creates absent records with their initial row and slots, and
  // counts the lookup in each record's frequency and last step. `found[i]` is
  // false where key i was absent when the call began.
  Status FindOrInsert(const int64_t* keys, int64_t n, void* rows,
                      int64_t* positions, bool* found,
                      const ParallelFor& parallel);

  // Looks up and combines in one pass: `pooled` is (num_bags x dim) float32.
  // `positions` has one entry per key and may be null. Empty bags give zeros.
  // Mean divides by the sum of weights, sqrtn by the root of the sum of their
  // squares, as tf.nn.embedding_lookup_sparse does.
  Status FindPooled(const Bags& bags, MissingRow missing,
                    const void* default_row, float* pooled, int64_t* positions,
                    const ParallelFor& parallel) const;
  Status FindOrInsertPooled(const Bags& bags, float* pooled, int64_t* positions,
                            const ParallelFor& parallel);

  // Unique keys of `keys[0, n)` that the table does not hold, in order of
  // first appearance.
  Status FindMissing(const int64_t* keys, int64_t n,
                     std::vector<int64_t>* missing) const;

  // Writes rows (row dtype). New records start with initial slots; slots of
  // existing ones are kept. With `only_missing`, existing rows are kept too.
  // Of a repeated key the last row wins (the first with `only_missing`).
  Status Assign(const int64_t* keys, int64_t n, const void* rows,
                bool only_missing, const ParallelFor& parallel);

  // Adds float32 `deltas` to rows; absent keys start from their initial row.
  Status Accumulate(const int64_t* keys, int64_t n, const float* deltas,
                    const ParallelFor& parallel);

  // Removes keys; `removed` (may be null) counts those that were present.
  Status Remove(const int64_t* keys, int64_t n, int64_t* removed);

  // Keeps the `max_records` records that are highest in `order`. `removed` (may
  // be null) receives the keys of the others, each once, by position.
  Status Restrict(int64_t max_records, EvictionOrder order,
                  std::vector<int64_t>* removed, const ParallelFor& parallel);

  // Counts a use of each key that is there, as training lookups do by
  // themselves, at a step of its own: moves the clock on by one first.
  Status CountUses(const int64_t* keys, int64_t n, const ParallelFor& parallel);

  // Reads how often, and at which step last, keys were used. Absent keys read
  // as 0; `found` may be null. Changes nothing.
  Status Uses(const int64_t* keys, int64_t n, int64_t* frequencies,
              int64_t* last_steps, bool* found,
              const ParallelFor& parallel) const;

  // Removes everything and resets nothing else (seed, step and slots stay).
  Status Clear();

  // Makes room for `capacity` records in all.
  Status Reserve(int64_t capacity);

  // Sets the slots kept beside rows. Slots of the same name and width keep
  // their contents (`initial` counts for new records only), new ones start at
  // `initial`, others are dropped and their names appended to `dropped` (may be
  // null). Positions stay valid. Memory above the
  // final size is bounded by one segment of the record store.
  Status SetSlots(const std::vector<SlotSpec>& slots,
                  std::vector<std::string>* dropped);

  // One optimizer step. `grads` is (n x dim) float32; rows with the same
  // position are summed first, in order, then clipped, then applied once.
  // Positions that are negative, or whose record is gone, are skipped.
  // Ensures that the slots `optimizer` needs are there (see SetSlots).
  Status Update(const RowOptimizer& optimizer, const int64_t* positions,
                int64_t n, const float* grads, const ParallelFor& parallel,
                std::vector<std::string>* dropped_slots);

  // Sums gradients of equal positions, in order of first appearance, and leaves
  // out dead and negative positions.
  Status Deduplicate(const int64_t* positions, int64_t n, const float* grads,
                     const GradientOutput& output) const;

  // Gradient of a pooled lookup with respect to the rows, already summed over
  // equal positions: the expanded (n_keys x dim) gradient is never formed.
  // `positions` are those that FindOrInsertPooled gave; negative ones are left
  // out. `bags.keys` is unused.
  Status PooledGradient(const Bags& bags, const int64_t* positions,
                        const float* pooled_grads, const GradientOutput& output,
                        const ParallelFor& parallel) const;

  // Reads rows (as float32) and the named slots of the records at
  // `positions`, which must be unique. `slots[s]` is (n x width of slot s).
  // Records that are gone read as zeros.
  Status ReadRecords(const int64_t* positions, int64_t n,
                     const std::vector<std::string>& slot_names, float* rows,
                     const std::vector<float*>& slots,
                     const ParallelFor& parallel) const;
  // The reverse; records that are gone are skipped.
  Status WriteRecords(const int64_t* positions, int64_t n,
                      const std::vector<std::string>& slot_names,
                      const float* rows, const std::vector<const float*>& slots,
                      const ParallelFor& parallel);

  // Copies up to `max_records` live records from position `*cursor` on, and
  // moves the cursor; at the end `*cursor` equals position_bound() and the
  // batch may be empty. Start with 0. Safe while others write: every record
  // that lives through the whole scan appears exactly once.
  Status Export(int64_t* cursor, int64_t max_records, RecordBatch* batch) const;
  // Adds or overwrites whole records.
  Status Import(const RecordColumns& records, const ParallelFor& parallel);

  // Pending gradients of a step that is spread over several batches.
  Status AccumulateGradients(const int64_t* positions, int64_t n,
                             const float* grads);
  // Hands over what was accumulated (summed over equal positions, in order of
  // first appearance), and empties it. Sums of records that are gone are left
  // out, also where the position has been handed out again.
  Status TakeGradients(std::vector<int64_t>* positions,
                       std::vector<float>* grads);

 private:
  class Impl;
  explicit Table(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace embedra

#endif  // EMBEDRA_CORE_TABLE_H_
