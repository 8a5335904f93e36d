// PositionAllocator: hands out the positions of new records.
//
// Fresh positions come in order from 0. Freed ones wait in a queue, as runs
// with the generation (number of the mutating call) that freed them:
//
//     front -> (gen 7: [40, 44)) (gen 7: [9, 10)) (gen 12: [0, 3)) <- back
//
// and are handed out again once Table::kReuseDelay generations have passed, so
// that a gradient in flight never lands on a stranger's record.

#ifndef EMBEDRA_CORE_POSITION_ALLOCATOR_H_
#define EMBEDRA_CORE_POSITION_ALLOCATOR_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace embedra::internal {

class PositionAllocator {
 public:
  // One more than the largest position handed out so far.
  int64_t bound() const { return bound_; }

  // What bound() will be after Allocate(count, generation).
  int64_t BoundAfter(int64_t count, uint64_t generation) const;

  // Writes `count` positions, reusable ones first, in the order of the queue.
  // Never fails: ask BoundAfter() and make room before.
  void Allocate(int64_t count, uint64_t generation, uint32_t* positions);

  // Makes room to queue `count` positions. Throws std::bad_alloc.
  void ReserveFrees(int64_t count);
  // Queues a position. PRECONDITION: there is room.
  void Free(uint32_t position, uint64_t generation);
  // Queues all positions below bound(), whatever was queued before.
  // PRECONDITION: there is room for one.
  void FreeAll(uint64_t generation);

  int64_t bytes() const;

 private:
  struct Run {
    uint64_t generation;
    uint32_t begin;
    uint32_t end;
  };

  static bool Reusable(const Run& run, uint64_t generation);

  int64_t bound_ = 0;
  std::vector<Run> freed_;  // the queue is [head_, end)
  size_t head_ = 0;
};

}  // namespace embedra::internal

#endif  // EMBEDRA_CORE_POSITION_ALLOCATOR_H_
