#include "embedra/core/position_allocator.h"

#include <algorithm>

#include "embedra/core/table.h"

namespace embedra::internal {

bool PositionAllocator::Reusable(const Run& run, uint64_t generation) {
  return generation - run.generation >=
         static_cast<uint64_t>(Table::kReuseDelay);
}

int64_t PositionAllocator::BoundAfter(int64_t count,
                                      uint64_t generation) const {
  count -= static_cast<int64_t>(unseen_.size());
  for (size_t i = head_; i < freed_.size(); ++i) {
    const Run& run = freed_[i];
    if (count <= 0 || !Reusable(run, generation)) break;
    count -= run.end - run.begin;
  }
  return bound_ + std::max<int64_t>(count, 0);
}

void PositionAllocator::Allocate(int64_t count, uint64_t generation,
                                 uint32_t* positions) {
  for (; count > 0 && !unseen_.empty(); --count) {
    *positions++ = unseen_.back();
    unseen_.pop_back();
  }
  while (count > 0 && head_ < freed_.size() &&
         Reusable(freed_[head_], generation)) {
    Run& run = freed_[head_];
    for (; count > 0 && run.begin < run.end; --count) {
      *positions++ = run.begin++;
    }
    if (run.begin == run.end) ++head_;
  }
  for (; count > 0; --count) *positions++ = static_cast<uint32_t>(bound_++);
}

void PositionAllocator::ReserveFrees(int64_t count, int64_t unseen) {
  unseen_.reserve(unseen_.size() + static_cast<size_t>(unseen));
  if (head_ > 0 && 2 * head_ >= freed_.size()) {  // drop what is used up
    freed_.erase(freed_.begin(),
                 freed_.begin() + static_cast<std::ptrdiff_t>(head_));
    head_ = 0;
  }
  const size_t needed = freed_.size() + static_cast<size_t>(count);
  if (needed > freed_.capacity()) {
    freed_.reserve(std::max(needed, 2 * freed_.capacity()));
  }
}

void PositionAllocator::Free(uint32_t position, uint64_t generation) {
  if (head_ < freed_.size() && freed_.back().generation == generation &&
      freed_.back().end == position) {
    ++freed_.back().end;
    return;
  }
  freed_.push_back(Run{generation, position, position + 1});
}

void PositionAllocator::FreeAll(uint64_t generation) {
  freed_.clear();
  unseen_.clear();
  head_ = 0;
  if (bound_ == 0) return;
  freed_.push_back(Run{generation, 0, static_cast<uint32_t>(bound_)});
}

int64_t PositionAllocator::bytes() const {
  return static_cast<int64_t>(freed_.capacity() * sizeof(Run) +
                              unseen_.capacity() * sizeof(uint32_t));
}

}  // namespace embedra::internal
