// Whole records by position: reading, writing, exporting, slots.

#include <algorithm>
#include <cstring>
#include <limits>

#include "embedra/core/batch_probe.h"
#include "embedra/core/scratch_pool.h"
#include "embedra/core/table_impl.h"

namespace embedra {

using internal::HeaderOf;
using internal::RecordHeader;
using internal::RecordLayout;

namespace {

constexpr int64_t kRecordCostNs = 100;
constexpr int64_t kAhead = 12;

// The indices of the named slots in `layout`.
bool FindSlots(const RecordLayout& layout,
               const std::vector<std::string>& names, std::vector<int>* slots,
               std::string* error) {
  for (const std::string& name : names) {
    slots->push_back(layout.FindSlot(name));
    if (slots->back() >= 0) continue;
    *error = "there is no slot '" + name + "'; the table keeps";
    for (const SlotSpec& slot : layout.slots) *error += " '" + slot.name + "'";
    if (layout.slots.empty()) *error += " none";
    return false;
  }
  return true;
}

}  // namespace

void Table::Impl::WriteInitialRow(int64_t key, void* row,
                                  float* scratch) const {
  if (is_float32()) {
    initializer_.Fill(key, static_cast<float*>(row));
    return;
  }
  initializer_.Fill(key, scratch);
  kernels_.from_float[row_type_index()](scratch, options_.dim, row);
}

Status Table::Impl::Keys(const int64_t* positions, int64_t n, int64_t* keys,
                         bool* alive) const {
  const Status status = CheckBatch(n, {positions, keys, alive});
  if (!status.ok()) return status;
  SharedLock lock(mutex_);
  for (int64_t i = 0; i < n; ++i) {
    if (i + kAhead < n) PrefetchPosition(positions[i + kAhead]);
    const char* record = LiveRecord(positions[i]);
    alive[i] = record != nullptr;
    keys[i] = alive[i] ? HeaderOf(record).key : 0;
  }
  return Status();
}

void Table::Impl::WriteInitialSlots(char* record) const {
  const std::vector<float>& initials = layout().slot_initials;
  if (initials.empty()) return;
  std::memcpy(store_.Slots(record), initials.data(),
              initials.size() * sizeof(float));
}

uint32_t Table::Impl::RecordStep() const {
  return static_cast<uint32_t>(
      std::clamp<int64_t>(step(), 0, std::numeric_limits<uint32_t>::max()));
}

Status Table::Impl::ReadRecords(const int64_t* positions, int64_t n,
                                const std::vector<std::string>& slot_names,
                                float* rows, const std::vector<float*>& slots,
                                const ParallelFor& parallel) const {
  Status status = CheckBatch(n, {positions, rows});
  if (!status.ok()) return status;
  if (slots.size() != slot_names.size()) {
    return Invalid("got " + std::to_string(slot_names.size()) +
                   " slot names and " + std::to_string(slots.size()) +
                   " arrays");
  }
  SharedLock lock(mutex_);
  std::vector<int> chosen;
  std::string error;
  if (!FindSlots(layout(), slot_names, &chosen, &error)) return Invalid(error);
  const int64_t dim = options_.dim;
  const auto to_float = kernels_.to_float[row_type_index()];
  parallel(n, kRecordCostNs, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (i + kAhead < end) PrefetchPosition(positions[i + kAhead]);
      char* record = LiveRecord(positions[i]);
      if (record == nullptr) {
        std::fill_n(rows + i * dim, dim, 0.0f);
      } else {
        to_float(record + RecordLayout::kRowOffset, dim, rows + i * dim);
      }
      for (size_t s = 0; s < chosen.size(); ++s) {
        const size_t slot = static_cast<size_t>(chosen[s]);
        const int64_t width = layout().slots[slot].width;
        float* target = slots[s] + i * width;
        if (record == nullptr) {
          std::fill_n(target, width, 0.0f);
        } else {
          std::copy_n(store_.Slots(record) + layout().slot_begins[slot], width,
                      target);
        }
      }
    }
  });
  return Status();
}

Status Table::Impl::WriteRecords(const int64_t* positions, int64_t n,
                                 const std::vector<std::string>& slot_names,
                                 const float* rows,
                                 const std::vector<const float*>& slots,
                                 const ParallelFor& parallel) {
  Status status = CheckBatch(n, {positions, rows});
  if (!status.ok()) return status;
  if (slots.size() != slot_names.size()) {
    return Invalid("got " + std::to_string(slot_names.size()) +
                   " slot names and " + std::to_string(slots.size()) +
                   " arrays");
  }
  WriteLock lock(*this);
  std::vector<int> chosen;
  std::string error;
  if (!FindSlots(layout(), slot_names, &chosen, &error)) return Invalid(error);
  const int64_t dim = options_.dim;
  const auto from_float = kernels_.from_float[row_type_index()];
  std::atomic<int64_t> written{0};
  parallel(n, kRecordCostNs, [&](int64_t begin, int64_t end) {
    int64_t live = 0;
    for (int64_t i = begin; i < end; ++i) {
      if (i + kAhead < end) PrefetchPosition(positions[i + kAhead]);
      char* record = LiveRecord(positions[i]);
      if (record == nullptr) continue;
      ++live;
      from_float(rows + i * dim, dim, record + RecordLayout::kRowOffset);
      for (size_t s = 0; s < chosen.size(); ++s) {
        const size_t slot = static_cast<size_t>(chosen[s]);
        const int64_t width = layout().slots[slot].width;
        std::copy_n(slots[s] + i * width, width,
                    store_.Slots(record) + layout().slot_begins[slot]);
      }
    }
    written += live;
  });
  updates_.fetch_add(written, std::memory_order_relaxed);
  return Status();
}

// ---- Slots
// -------------------------------------------------------------------

Status Table::Impl::SetSlots(const std::vector<SlotSpec>& slots,
                             std::vector<std::string>* dropped) {
  Status status = CheckSlots(slots);
  if (!status.ok()) return status;
  WriteLock lock(*this);
  return SetSlotsLocked(slots, dropped);
}

Status Table::Impl::SetSlotsLocked(const std::vector<SlotSpec>& slots,
                                   std::vector<std::string>* dropped) {
  if (layout().slots == slots) return Status();
  std::vector<std::string> lost;
  for (const SlotSpec& old : layout().slots) {
    const bool kept =
        std::any_of(slots.begin(), slots.end(), [&](const SlotSpec& slot) {
          return slot.name == old.name && slot.width == old.width;
        });
    if (!kept) lost.push_back(old.name);
  }
  if (dropped != nullptr) dropped->reserve(dropped->size() + lost.size());
  if (!store_.SetSlots(slots, allocator_.bound())) {
    return OutOfMemory("to change the slots of " + std::to_string(size()) +
                       " records");
  }
  if (dropped != nullptr) {
    for (std::string& name : lost) dropped->push_back(std::move(name));
  }
  return Status();
}

// ---- Export
// ------------------------------------------------------------------

Status Table::Impl::Export(int64_t* cursor, int64_t max_records,
                           RecordBatch* batch) const {
  if (*cursor < 0 || max_records < 1) {
    return Invalid("Export needs a cursor >= 0 and max_records >= 1, got " +
                   std::to_string(*cursor) + " and " +
                   std::to_string(max_records));
  }
  SharedLock lock(mutex_);
  const int64_t bound = allocator_.bound();
  // Live records first, so that the columns are made once, at their size.
  std::vector<uint32_t> live;
  live.reserve(static_cast<size_t>(std::clamp<int64_t>(
      bound - *cursor, 0, std::min(max_records, index_.size()))));
  int64_t position = *cursor;
  for (; position < bound; ++position) {
    if (static_cast<int64_t>(live.size()) == max_records) break;
    if (LiveRecord(position) != nullptr) {
      live.push_back(static_cast<uint32_t>(position));
    }
  }
  const size_t n = live.size();
  const size_t slot_width = static_cast<size_t>(layout().slot_width);
  RecordBatch out;
  out.keys.resize(n);
  out.rows.resize(n * row_bytes_);
  out.slots.resize(n * slot_width);
  out.frequencies.resize(n);
  out.last_steps.resize(n);
  for (size_t i = 0; i < n; ++i) {
    char* record = store_.Record(live[i]);
    const RecordHeader& header = HeaderOf(record);
    out.keys[i] = header.key;
    // Lookups write these two under the shared lock.
    out.frequencies[i] = __atomic_load_n(&header.frequency, __ATOMIC_RELAXED);
    out.last_steps[i] = __atomic_load_n(&header.last_step, __ATOMIC_RELAXED);
    std::memcpy(out.rows.data() + i * row_bytes_,
                record + RecordLayout::kRowOffset, row_bytes_);
    if (slot_width > 0) {
      std::memcpy(out.slots.data() + i * slot_width, store_.Slots(record),
                  slot_width * sizeof(float));
    }
  }
  *batch = std::move(out);
  *cursor = position;
  return Status();
}

}  // namespace embedra
