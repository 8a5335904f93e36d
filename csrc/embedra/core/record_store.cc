#include "embedra/core/record_store.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <utility>

namespace embedra::internal {
namespace {

constexpr size_t kSegmentBytes = size_t{8} << 20;
constexpr int kMinShift = 8;
constexpr int kMaxShift = 16;

size_t RoundUp(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

// Most records whose bare rows fit a segment, as a power of two.
int SegmentShift(const RecordLayout& layout) {
  int shift = kMinShift;
  while (shift < kMaxShift &&
         (layout.slots_offset << (shift + 1)) <= kSegmentBytes) {
    ++shift;
  }
  return shift;
}

}  // namespace

RecordLayout::RecordLayout(int64_t dim, RowType row_type,
                           const std::vector<SlotSpec>& slots)
    : dim(dim), row_type(row_type), slots(slots) {
  row_bytes = static_cast<size_t>(dim) * SizeOf(row_type);
  slots_offset = kRowOffset + RoundUp(row_bytes, sizeof(float));
  for (const SlotSpec& slot : slots) {
    slot_begins.push_back(slot_width);
    slot_width += slot.width;
    slot_initials.resize(static_cast<size_t>(slot_width), slot.initial);
    if (slot.initial != 0.0f || std::signbit(slot.initial)) {
      slots_start_at_zero = false;
    }
  }
  stride = RoundUp(
      slots_offset + static_cast<size_t>(slot_width) * sizeof(float), 8);
}

int RecordLayout::FindSlot(const std::string& name) const {
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

RecordStore::RecordStore(RecordLayout layout)
    : layout_(std::move(layout)),
      shift_(SegmentShift(layout_)),
      mask_((uint32_t{1} << shift_) - 1),
      stride_(layout_.stride) {}

MemoryBlock RecordStore::NewSegment(const RecordLayout& layout,
                                    size_t index) const {
  // The first huge page of a table stays ordinary pages: a table of a few
  // hundred records should not take 2 MiB.
  const size_t huge_from = index == 0 ? MemoryBlock::kHugePage : 0;
  return MemoryBlock::Reserve(layout.stride << shift_, huge_from);
}

bool RecordStore::Reserve(int64_t positions) {
  try {
    while (capacity() < positions) {
      // Room in both vectors first, so that they cannot end up unequal.
      if (segments_.size() == segments_.capacity()) {
        const size_t room = 2 * segments_.size() + 8;
        bases_.reserve(room);
        segments_.reserve(room);
      }
      MemoryBlock block = NewSegment(layout_, segments_.size());
      if (!block) return false;
      bases_.push_back(block.data());
      segments_.push_back(std::move(block));
    }
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}

void RecordStore::Discard() {
  for (MemoryBlock& segment : segments_) segment.Discard();
}

bool RecordStore::SetSlots(const std::vector<SlotSpec>& slots, int64_t bound) {
  RecordLayout layout(layout_.dim, layout_.row_type, slots);
  std::vector<int> from(slots.size(), -1);
  for (size_t i = 0; i < slots.size(); ++i) {
    const int old = layout_.FindSlot(slots[i].name);
    if (old >= 0 &&
        layout_.slots[static_cast<size_t>(old)].width == slots[i].width) {
      from[i] = old;
    }
  }
  if (layout.slot_begins == layout_.slot_begins &&
      layout.slot_width == layout_.slot_width &&
      std::find(from.begin(), from.end(), -1) == from.end() &&
      std::is_sorted(from.begin(), from.end())) {
    layout_ = std::move(layout);  // other initial values, at most
    return true;
  }
  // Address space for all of it first: the rest cannot fail.
  std::vector<MemoryBlock> segments;
  segments.reserve(segments_.size());
  for (size_t i = 0; i < segments_.size(); ++i) {
    segments.push_back(NewSegment(layout, i));
    if (!segments.back()) return false;
  }
  for (size_t i = 0; i < segments_.size(); ++i) {
    const int64_t begin = static_cast<int64_t>(i) << shift_;
    const int64_t count =
        std::clamp<int64_t>(bound - begin, 0, int64_t{1} << shift_);
    RewriteSegment(layout, from, bases_[i], segments[i].data(), count);
    bases_[i] = segments[i].data();
    std::swap(segments_[i], segments[i]);
    segments[i] = MemoryBlock();
  }
  stride_ = layout.stride;
  layout_ = std::move(layout);
  return true;
}

void RecordStore::RewriteSegment(const RecordLayout& layout,
                                 const std::vector<int>& from,
                                 const char* old_base, char* new_base,
                                 int64_t count) const {
  for (int64_t r = 0; r < count; ++r) {
    const char* source = old_base + static_cast<size_t>(r) * layout_.stride;
    if (HeaderOf(source).live == 0) continue;
    char* target = new_base + static_cast<size_t>(r) * layout.stride;
    std::memcpy(target, source, RecordLayout::kRowOffset + layout.row_bytes);
    const char* old_slots = source + layout_.slots_offset;
    char* new_slots = target + layout.slots_offset;
    for (size_t s = 0; s < from.size(); ++s) {
      const size_t bytes =
          static_cast<size_t>(layout.slots[s].width) * sizeof(float);
      const size_t to = static_cast<size_t>(layout.slot_begins[s]);
      const void* values =
          from[s] < 0
              ? static_cast<const void*>(layout.slot_initials.data() + to)
              : old_slots +
                    sizeof(float) *
                        static_cast<size_t>(
                            layout_.slot_begins[static_cast<size_t>(from[s])]);
      std::memcpy(new_slots + to * sizeof(float), values, bytes);
    }
  }
}

}  // namespace embedra::internal
