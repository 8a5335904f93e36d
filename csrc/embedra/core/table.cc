#include "embedra/core/table.h"

#include <algorithm>
#include <new>
#include <set>
#include <utility>

#include "embedra/core/table_impl.h"

namespace embedra {
namespace {

// Keeps sizes of records and offsets far from overflow.
constexpr int64_t kMaxDim = int64_t{1} << 20;

Status ValidateSlots(const std::vector<SlotSpec>& slots, int64_t dim,
                     const std::string& where) {
  std::set<std::string> names;
  for (const SlotSpec& slot : slots) {
    if (slot.name.empty()) {
      return Status::InvalidArgument(where + "a slot needs a name");
    }
    if (slot.width != 1 && slot.width != dim) {
      return Status::InvalidArgument(
          where + "slot '" + slot.name + "' must be 1 or dim = " +
          std::to_string(dim) + " wide, got " + std::to_string(slot.width));
    }
    if (!names.insert(slot.name).second) {
      return Status::InvalidArgument(where + "slot '" + slot.name +
                                     "' is given twice");
    }
  }
  return Status();
}

// Runs `body`, turning a failed allocation into a Status.
template <typename Body>
Status Guarded(const TableOptions& options, const char* method,
               const Body& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return Status::ResourceExhausted("table '" + options.name +
                                     "': not enough memory for " + method);
  }
}

}  // namespace

size_t SizeOf(RowType type) { return type == RowType::kFloat32 ? 4 : 2; }

Status TableOptions::Validate() const {
  const std::string where = "table '" + name + "': ";
  if (name.empty()) return Status::InvalidArgument("a table needs a name");
  if (dim < 1 || dim > kMaxDim) {
    return Status::InvalidArgument(where + "dim must be from 1 to " +
                                   std::to_string(kMaxDim) + ", got " +
                                   std::to_string(dim));
  }
  if (initial_capacity < 0) {
    return Status::InvalidArgument(where +
                                   "initial_capacity must be >= 0, got " +
                                   std::to_string(initial_capacity));
  }
  if (max_capacity < 0) {
    return Status::InvalidArgument(where + "max_capacity must be >= 0, got " +
                                   std::to_string(max_capacity));
  }
  Status status = initializer.Validate(dim);
  if (!status.ok()) {
    return Status::InvalidArgument(where + status.message());
  }
  return ValidateSlots(slots, dim, where);
}

// ---- Impl: life and facts
// ----------------------------------------------------

Table::Impl::Impl(const TableOptions& options)
    : options_(options),
      initializer_spec_(options.initializer),
      seed_(options.seed),
      stream_name_(options.name),
      initializer_(options.initializer, options.seed, options.name,
                   options.dim),
      kernels_(internal::Kernels()),
      row_bytes_(static_cast<size_t>(options.dim) * SizeOf(options.row_type)),
      store_(internal::RecordLayout(options.dim, options.row_type,
                                    options.slots)) {}

std::vector<SlotSpec> Table::Impl::slots() const {
  SharedLock lock(mutex_);
  return layout().slots;
}

Status Table::Impl::SetInitializer(const InitializerSpec& initializer,
                                   uint64_t seed,
                                   const std::string& stream_name) {
  const Status status = initializer.Validate(options_.dim);
  if (!status.ok()) return Invalid(status.message());
  RowInitializer made(initializer, seed, stream_name, options_.dim);
  InitializerSpec spec = initializer;
  std::string name = stream_name;
  WriteLock lock(*this);
  initializer_ = std::move(made);
  initializer_spec_ = std::move(spec);
  seed_ = seed;
  stream_name_ = std::move(name);
  return Status();
}

void Table::Impl::GetInitializer(InitializerSpec* initializer, uint64_t* seed,
                                 std::string* stream_name) const {
  SharedLock lock(mutex_);
  if (initializer != nullptr) *initializer = initializer_spec_;
  if (seed != nullptr) *seed = seed_;
  if (stream_name != nullptr) *stream_name = stream_name_;
}

Statistics Table::Impl::statistics() const {
  Statistics s;
  SharedLock lock(mutex_);
  s.size = index_.size();
  s.capacity = index_.capacity();
  s.bytes = index_.bytes() + allocator_.bytes() +
            allocator_.bound() * static_cast<int64_t>(layout().stride);
  s.inserts = inserts_.load(std::memory_order_relaxed);
  s.removes = removes_.load(std::memory_order_relaxed);
  s.evictions = evictions_.load(std::memory_order_relaxed);
  s.hits = hits_.load(std::memory_order_relaxed);
  s.misses = misses_.load(std::memory_order_relaxed);
  s.updates = updates_.load(std::memory_order_relaxed);
  s.stale_gradients = stale_gradients_.load(std::memory_order_relaxed);
  const int64_t entries = index_.entries();
  if (entries > 0) {
    s.load_factor = static_cast<double>(s.size) / static_cast<double>(entries);
  }
  return s;
}

Status Table::Impl::CheckBatch(
    int64_t n, std::initializer_list<const void*> pointers) const {
  if (n < 0 || n > internal::Grouping::kMaxEntries) {
    return Invalid("a batch has from 0 to " +
                   std::to_string(internal::Grouping::kMaxEntries) +
                   " entries, got " + std::to_string(n));
  }
  for (const void* pointer : pointers) {
    if (n > 0 && pointer == nullptr) {
      return Invalid("got a null array for a batch of " + std::to_string(n));
    }
  }
  return Status();
}

Status Table::Impl::CheckSlots(const std::vector<SlotSpec>& slots) const {
  return ValidateSlots(slots, options_.dim, "table '" + options_.name + "': ");
}

// ---- Table: the methods with their guard
// -------------------------------------

Status Table::Create(const TableOptions& options,
                     std::unique_ptr<Table>* table) {
  return Guarded(options, "Create", [&] {
    Status status = options.Validate();
    if (!status.ok()) return status;
    std::unique_ptr<Table> made(new Table(std::make_unique<Impl>(options)));
    const int64_t bound = options.max_capacity;
    status =
        made->Reserve(bound == 0 ? options.initial_capacity
                                 : std::min(options.initial_capacity, bound));
    if (status.ok()) *table = std::move(made);
    return status;
  });
}

Table::Table(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Table::~Table() = default;

const TableOptions& Table::options() const { return impl_->options(); }
int64_t Table::dim() const { return options().dim; }
RowType Table::row_type() const { return options().row_type; }
int64_t Table::size() const { return impl_->size(); }
int64_t Table::position_bound() const { return impl_->position_bound(); }
Statistics Table::statistics() const { return impl_->statistics(); }
int64_t Table::step() const { return impl_->step(); }
void Table::set_step(int64_t step) { impl_->set_step(step); }
std::vector<SlotSpec> Table::slots() const { return impl_->slots(); }

Status Table::SetInitializer(const InitializerSpec& initializer, uint64_t seed,
                             const std::string& stream_name) {
  return Guarded(options(), "SetInitializer", [&] {
    return impl_->SetInitializer(initializer, seed, stream_name);
  });
}

void Table::GetInitializer(InitializerSpec* initializer, uint64_t* seed,
                           std::string* stream_name) const {
  impl_->GetInitializer(initializer, seed, stream_name);
}

Status Table::Keys(const int64_t* positions, int64_t n, int64_t* keys,
                   bool* alive) const {
  return Guarded(options(), "Keys",
                 [&] { return impl_->Keys(positions, n, keys, alive); });
}

Status Table::Find(const int64_t* keys, int64_t n, MissingRow missing,
                   const void* default_row, void* rows, int64_t* positions,
                   bool* found, const ParallelFor& parallel) const {
  return Guarded(options(), "Find", [&] {
    return impl_->Find(keys, n, missing, default_row, rows, positions, found,
                       parallel);
  });
}

Status Table::FindOrInsert(const int64_t* keys, int64_t n, void* rows,
                           int64_t* positions, bool* found,
                           const ParallelFor& parallel) {
  return Guarded(options(), "FindOrInsert", [&] {
    return impl_->FindOrInsert(keys, n, rows, positions, found, parallel);
  });
}

Status Table::FindPooled(const Bags& bags, MissingRow missing,
                         const void* default_row, float* pooled,
                         int64_t* positions,
                         const ParallelFor& parallel) const {
  return Guarded(options(), "FindPooled", [&] {
    return impl_->FindPooled(bags, missing, default_row, pooled, positions,
                             parallel);
  });
}

Status Table::FindOrInsertPooled(const Bags& bags, float* pooled,
                                 int64_t* positions,
                                 const ParallelFor& parallel) {
  return Guarded(options(), "FindOrInsertPooled", [&] {
    return impl_->FindOrInsertPooled(bags, pooled, positions, parallel);
  });
}

Status Table::FindMissing(const int64_t* keys, int64_t n,
                          std::vector<int64_t>* missing) const {
  return Guarded(options(), "FindMissing",
                 [&] { return impl_->FindMissing(keys, n, missing); });
}

Status Table::Assign(const int64_t* keys, int64_t n, const void* rows,
                     bool only_missing, const ParallelFor& parallel) {
  return Guarded(options(), "Assign", [&] {
    return impl_->Assign(keys, n, rows, only_missing, parallel);
  });
}

Status Table::Accumulate(const int64_t* keys, int64_t n, const float* deltas,
                         const ParallelFor& parallel) {
  return Guarded(options(), "Accumulate",
                 [&] { return impl_->Accumulate(keys, n, deltas, parallel); });
}

Status Table::Remove(const int64_t* keys, int64_t n, int64_t* removed) {
  return Guarded(options(), "Remove",
                 [&] { return impl_->Remove(keys, n, removed); });
}

Status Table::Restrict(int64_t max_records, EvictionOrder order,
                       std::vector<int64_t>* removed,
                       const ParallelFor& parallel) {
  return Guarded(options(), "Restrict", [&] {
    return impl_->Restrict(max_records, order, removed, parallel);
  });
}

Status Table::CountUses(const int64_t* keys, int64_t n,
                        const ParallelFor& parallel) {
  return Guarded(options(), "CountUses",
                 [&] { return impl_->CountUses(keys, n, parallel); });
}

Status Table::Uses(const int64_t* keys, int64_t n, int64_t* frequencies,
                   int64_t* last_steps, bool* found,
                   const ParallelFor& parallel) const {
  return Guarded(options(), "Uses", [&] {
    return impl_->Uses(keys, n, frequencies, last_steps, found, parallel);
  });
}

Status Table::Clear() {
  return Guarded(options(), "Clear", [&] { return impl_->Clear(); });
}

Status Table::Reserve(int64_t capacity) {
  return Guarded(options(), "Reserve",
                 [&] { return impl_->Reserve(capacity); });
}

Status Table::SetSlots(const std::vector<SlotSpec>& slots,
                       std::vector<std::string>* dropped) {
  return Guarded(options(), "SetSlots",
                 [&] { return impl_->SetSlots(slots, dropped); });
}

Status Table::Update(const RowOptimizer& optimizer, const int64_t* positions,
                     int64_t n, const float* grads, const ParallelFor& parallel,
                     std::vector<std::string>* dropped_slots) {
  return Guarded(options(), "Update", [&] {
    return impl_->Update(optimizer, positions, n, grads, parallel,
                         dropped_slots);
  });
}

Status Table::Deduplicate(const int64_t* positions, int64_t n,
                          const float* grads,
                          const GradientOutput& output) const {
  return Guarded(options(), "Deduplicate", [&] {
    return impl_->Deduplicate(positions, n, grads, output);
  });
}

Status Table::PooledGradient(const Bags& bags, const int64_t* positions,
                             const float* pooled_grads,
                             const GradientOutput& output,
                             const ParallelFor& parallel) const {
  return Guarded(options(), "PooledGradient", [&] {
    return impl_->PooledGradient(bags, positions, pooled_grads, output,
                                 parallel);
  });
}

Status Table::ReadRecords(const int64_t* positions, int64_t n,
                          const std::vector<std::string>& slot_names,
                          float* rows, const std::vector<float*>& slots,
                          const ParallelFor& parallel) const {
  return Guarded(options(), "ReadRecords", [&] {
    return impl_->ReadRecords(positions, n, slot_names, rows, slots, parallel);
  });
}

Status Table::WriteRecords(const int64_t* positions, int64_t n,
                           const std::vector<std::string>& slot_names,
                           const float* rows,
                           const std::vector<const float*>& slots,
                           const ParallelFor& parallel) {
  return Guarded(options(), "WriteRecords", [&] {
    return impl_->WriteRecords(positions, n, slot_names, rows, slots, parallel);
  });
}

Status Table::Export(int64_t* cursor, int64_t max_records,
                     RecordBatch* batch) const {
  return Guarded(options(), "Export",
                 [&] { return impl_->Export(cursor, max_records, batch); });
}

Status Table::Import(const RecordColumns& records,
                     const ParallelFor& parallel) {
  return Guarded(options(), "Import",
                 [&] { return impl_->Import(records, parallel); });
}

Status Table::AccumulateGradients(const int64_t* positions, int64_t n,
                                  const float* grads) {
  return Guarded(options(), "AccumulateGradients", [&] {
    return impl_->AccumulateGradients(positions, n, grads);
  });
}

Status Table::TakeGradients(std::vector<int64_t>* positions,
                            std::vector<float>* grads) {
  return Guarded(options(), "TakeGradients",
                 [&] { return impl_->TakeGradients(positions, grads); });
}

}  // namespace embedra
