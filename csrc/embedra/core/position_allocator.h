// PositionAllocator: hands out the positions of new records.
//
// Fresh positions come in order from 0. Freed ones wait in a queue, as runs
// with the generation (number of the mutating call) that freed them:
//
//     front -> (gen 7: [40, 44)) (gen 7: [9, 10)) (gen 12: [0, 3)) <- back
//
// and are handed out again once Table::kReuseDelay generations have passed, so
// that a gradient in flight never lands on a stranger's record. Positions that
// nobody can have seen are given back at once, and are the next to go out.

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

  // Writes `count` positions, reusable ones first, in the order of the queue
  // after those given back.
  // Never fails: ask BoundAfter() and make room before.
  void Allocate(int64_t count, uint64_t generation, uint32_t* positions);

  // Makes room to queue `count` positions, or runs of them, and to take
  // `unseen` back. Throws std::bad_alloc.
  void ReserveFrees(int64_t count, int64_t unseen = 0);
  // Queues a position. PRECONDITION: there is room.
  void Free(uint32_t position, uint64_t generation);
  // Takes back a position that was allocated in this very call.
  // PRECONDITION: as for Free.
  void GiveBack(uint32_t position) { unseen_.push_back(position); }
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
  std::vector<uint32_t> unseen_;  // a stack
};

}  // namespace embedra::internal

#endif  // EMBEDRA_CORE_POSITION_ALLOCATOR_H_
