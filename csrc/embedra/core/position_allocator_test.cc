#include "embedra/core/position_allocator.h"

#include <vector>

#include "doctest/doctest.h"
#include "embedra/core/table.h"

namespace embedra::internal {
namespace {

constexpr uint64_t kDelay = Table::kReuseDelay;

std::vector<uint32_t> Allocate(PositionAllocator& allocator, int64_t count,
                               uint64_t generation) {
  const int64_t bound = allocator.BoundAfter(count, generation);
  std::vector<uint32_t> positions(static_cast<size_t>(count));
  allocator.Allocate(count, generation, positions.data());
  CHECK(allocator.bound() == bound);
  return positions;
}

void Free(PositionAllocator& allocator, const std::vector<uint32_t>& positions,
          uint64_t generation) {
  allocator.ReserveFrees(static_cast<int64_t>(positions.size()));
  for (const uint32_t p : positions) allocator.Free(p, generation);
}

TEST_CASE("fresh positions are dense and in order") {
  PositionAllocator allocator;
  CHECK(Allocate(allocator, 3, 1) == std::vector<uint32_t>{0, 1, 2});
  CHECK(Allocate(allocator, 2, 2) == std::vector<uint32_t>{3, 4});
  CHECK(allocator.bound() == 5);
}

TEST_CASE("freed positions wait, then come back oldest first") {
  PositionAllocator allocator;
  Allocate(allocator, 8, 1);
  Free(allocator, {5, 6, 2}, 10);
  Free(allocator, {1}, 11);
  CHECK(Allocate(allocator, 1, 10 + kDelay - 1) == std::vector<uint32_t>{8});
  CHECK(Allocate(allocator, 2, 10 + kDelay) == std::vector<uint32_t>{5, 6});
  // The one freed at 11 is not due yet.
  CHECK(Allocate(allocator, 2, 10 + kDelay) == std::vector<uint32_t>{2, 9});
  CHECK(Allocate(allocator, 2, 11 + kDelay) == std::vector<uint32_t>{1, 10});
}

TEST_CASE("freeing all queues every position once") {
  PositionAllocator allocator;
  Allocate(allocator, 4, 1);
  Free(allocator, {2}, 2);
  allocator.ReserveFrees(1);
  allocator.FreeAll(3);
  CHECK(allocator.bound() == 4);
  CHECK(Allocate(allocator, 5, 3 + kDelay) ==
        std::vector<uint32_t>{0, 1, 2, 3, 4});
}

TEST_CASE("the queue stays small while positions go round") {
  PositionAllocator allocator;
  uint64_t generation = 1;
  std::vector<uint32_t> live = Allocate(allocator, 100, generation);
  for (int i = 0; i < 10000; ++i) {
    ++generation;
    Free(allocator, live, generation);
    live = Allocate(allocator, 100, generation);
  }
  CHECK(allocator.bound() == 100 * (Table::kReuseDelay + 1));
  CHECK(allocator.bytes() < 64 * 1024);
}

TEST_CASE("positions given back go out next, before those that wait") {
  PositionAllocator allocator;
  Allocate(allocator, 8, 1);
  Free(allocator, {0}, 1);
  allocator.ReserveFrees(0, 2);
  allocator.GiveBack(6);
  allocator.GiveBack(7);
  CHECK(Allocate(allocator, 3, 2) == std::vector<uint32_t>{7, 6, 8});
  CHECK(Allocate(allocator, 1, 1 + kDelay) == std::vector<uint32_t>{0});
}

}  // namespace
}  // namespace embedra::internal
