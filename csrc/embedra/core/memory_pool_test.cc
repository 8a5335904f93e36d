#include "embedra/core/memory_pool.h"

#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "doctest/doctest.h"

namespace embedra::internal {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

TEST_CASE("a block that was given back is taken again, by about its size") {
  MemoryPool pool(8 * kMiB);
  void* const first = pool.Take(kMiB);
  REQUIRE(first != nullptr);
  CHECK(pool.idle_bytes() == 0);
  pool.Give(first);
  CHECK(pool.idle_bytes() == kMiB);
  void* const other = pool.Take(2 * kMiB);
  CHECK(other != first);
  CHECK(pool.Take(kMiB - 100) == first);
  CHECK(pool.idle_bytes() == 0);
  pool.Give(first);
  pool.Give(other);
  CHECK(pool.idle_bytes() == 3 * kMiB);
}

TEST_CASE("no more is kept idle than was allowed") {
  MemoryPool pool(3 * kMiB);
  std::vector<void*> blocks;
  for (int i = 0; i < 5; ++i) blocks.push_back(pool.Take(kMiB));
  for (void* block : blocks) pool.Give(block);
  CHECK(pool.idle_bytes() == 3 * kMiB);
  MemoryPool none(0);
  none.Give(none.Take(kMiB));
  CHECK(none.idle_bytes() == 0);
}

TEST_CASE("blocks of all sizes hold what was asked for and do not overlap") {
  MemoryPool pool(64 * kMiB);
  for (int round = 0; round < 2; ++round) {
    std::vector<std::pair<char*, size_t>> blocks;
    for (size_t bytes = 1; bytes < 4 * kMiB; bytes = bytes * 3 / 2 + 1) {
      auto* block = static_cast<char*>(pool.Take(bytes));
      REQUIRE(block != nullptr);
      CHECK(reinterpret_cast<uintptr_t>(block) % 64 == 0);
      std::memset(block, static_cast<int>(blocks.size()), bytes);
      blocks.emplace_back(block, bytes);
    }
    for (size_t i = 0; i < blocks.size(); ++i) {
      CHECK(blocks[i].first[0] == static_cast<char>(i));
      CHECK(blocks[i].first[blocks[i].second - 1] == static_cast<char>(i));
      pool.Give(blocks[i].first);
    }
  }
}

TEST_CASE("what nobody has is refused, and what is not the pool's ignored") {
  MemoryPool pool(kMiB);
  CHECK(pool.Take(~size_t{0}) == nullptr);
  CHECK(pool.Take(~size_t{0} / 8) == nullptr);
  int other = 0;
  pool.Give(&other);
  CHECK(pool.idle_bytes() == 0);
}

TEST_CASE("threads take and give at once") {
  MemoryPool pool(8 * kMiB);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&pool, t] {
      for (int i = 0; i < 200; ++i) {
        const size_t bytes = MemoryPool::kLeast * (1 + i % 5);
        auto* block = static_cast<char*>(pool.Take(bytes));
        block[0] = block[bytes - 1] = static_cast<char>(t);
        CHECK(block[0] == block[bytes - 1]);
        pool.Give(block);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(pool.idle_bytes() <= 8 * kMiB);
}

TEST_CASE("pooled memory is the pool's while it lives") {
  char* data;
  {
    PooledMemory memory(kMiB);
    data = memory.data();
    PooledMemory moved = std::move(memory);
    CHECK(moved.data() == data);
    CHECK(memory.data() == nullptr);
  }
  CHECK(PooledMemory(kMiB).data() == data);
}

}  // namespace
}  // namespace embedra::internal
