// Many threads on one table. What they see is checked where it must hold under
// any order; races are for ThreadSanitizer to find (EMBEDRA_SANITIZE=thread).

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "doctest/doctest.h"
#include "embedra/core/gradient_vectors.h"
#include "embedra/core/test_util.h"
#include "embedra/core/thread_pool.h"

namespace embedra {
namespace {

using testing::MakeTable;
using testing::Range;

constexpr int64_t kDim = 8;
constexpr int kRounds = 60;

// Runs every body in a thread of its own; doctest's assertions are kept out of
// them, as they are slow under contention, so a body returns what went wrong.
int RunTogether(const std::vector<std::function<int()>>& bodies) {
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (const auto& body : bodies) {
    threads.emplace_back([&failures, &body] { failures += body(); });
  }
  for (std::thread& thread : threads) thread.join();
  return failures;
}

// A table whose rows have all columns equal, and whose updates keep them so: a
// row read half-written would show.
std::unique_ptr<Table> EqualColumns() {
  TableOptions options = testing::UniformOptions(kDim);
  options.initializer = InitializerSpec();
  return MakeTable(options);
}

bool ColumnsEqual(const std::vector<float>& rows) {
  for (size_t i = 0; i < rows.size(); i += kDim) {
    for (size_t c = 1; c < kDim; ++c) {
      if (rows[i + c] != rows[i]) return false;
    }
  }
  return true;
}

std::vector<int64_t> RandomKeys(std::mt19937& random, size_t n) {
  std::vector<int64_t> keys(n);
  for (int64_t& key : keys) key = static_cast<int64_t>(random() % 4000);
  return keys;
}

int Train(Table& table, uint32_t seed, const ParallelFor& parallel) {
  std::mt19937 random(seed);
  RowOptimizer momentum;
  momentum.kind = OptimizerKind::kMomentum;
  momentum.learning_rate = 0.1f;
  momentum.momentum = 0.9f;
  int failures = 0;
  for (int round = 0; round < kRounds; ++round) {
    const std::vector<int64_t> keys = RandomKeys(random, 500);
    std::vector<float> rows(keys.size() * kDim);
    std::vector<int64_t> positions(keys.size());
    failures += !table
                     .FindOrInsert(keys.data(), 500, rows.data(),
                                   positions.data(), nullptr, parallel)
                     .ok();
    failures += !ColumnsEqual(rows);
    const std::vector<float> grads(rows.size(), 0.01f);
    failures += !table
                     .Update(momentum, positions.data(), 500, grads.data(),
                             parallel, nullptr)
                     .ok();
  }
  return failures;
}

int ReadRows(const Table& table, uint32_t seed) {
  std::mt19937 random(seed);
  int failures = 0;
  for (int round = 0; round < kRounds; ++round) {
    const std::vector<int64_t> keys = RandomKeys(random, 500);
    std::vector<float> rows(keys.size() * kDim);
    failures += !table
                     .Find(keys.data(), 500, MissingRow::kInitial, nullptr,
                           rows.data(), nullptr, nullptr, Serial())
                     .ok();
    failures += !ColumnsEqual(rows);
  }
  return failures;
}

int RemoveKeys(Table& table, uint32_t seed) {
  std::mt19937 random(seed);
  int failures = 0;
  for (int round = 0; round < kRounds; ++round) {
    const std::vector<int64_t> keys = RandomKeys(random, 200);
    failures += !table.Remove(keys.data(), 200, nullptr).ok();
    if (round % 20 == 19) failures += !table.Clear().ok();
  }
  return failures;
}

int Scan(const Table& table) {
  int failures = 0;
  for (int round = 0; round < kRounds / 4; ++round) {
    int64_t cursor = 0;
    while (cursor < table.position_bound()) {
      RecordBatch batch;
      failures += !table.Export(&cursor, 300, &batch).ok();
      if (batch.keys.empty()) continue;
      std::vector<float> rows(batch.rows.size() / sizeof(float));
      std::memcpy(rows.data(), batch.rows.data(), batch.rows.size());
      failures += !ColumnsEqual(rows);
    }
    (void)table.statistics();
    (void)table.slots();
  }
  return failures;
}

TEST_CASE("lookups, updates, removals and scans run together") {
  ThreadPool pool(3);
  const auto table = EqualColumns();
  const ParallelFor parallel = pool.parallel();
  CHECK(RunTogether({[&] { return Train(*table, 1, parallel); },
                     [&] { return Train(*table, 2, Serial()); },
                     [&] { return ReadRows(*table, 3); },
                     [&] { return RemoveKeys(*table, 4); },
                     [&] { return Scan(*table); }}) == 0);
  const RecordBatch records = testing::ExportAll(*table);
  const std::set<int64_t> keys(records.keys.begin(), records.keys.end());
  CHECK(keys.size() == records.keys.size());
  CHECK(table->size() == static_cast<int64_t>(keys.size()));
}

TEST_CASE("threads that insert the same keys make each once") {
  const auto table = EqualColumns();
  const std::vector<int64_t> keys = Range(0, 20000);
  std::vector<std::vector<int64_t>> positions(
      4, std::vector<int64_t>(keys.size()));
  std::vector<std::function<int()>> bodies;
  for (size_t t = 0; t < 4; ++t) {
    bodies.push_back([&, t] {
      std::vector<float> rows(keys.size() * kDim);
      return static_cast<int>(
          !table
               ->FindOrInsert(keys.data(), 20000, rows.data(),
                              positions[t].data(), nullptr, Serial())
               .ok());
    });
  }
  CHECK(RunTogether(bodies) == 0);
  CHECK(table->size() == 20000);
  CHECK(table->statistics().inserts == 20000);
  for (size_t t = 1; t < 4; ++t) CHECK(positions[t] == positions[0]);
  const RecordBatch records = testing::ExportAll(*table);
  CHECK(std::all_of(records.frequencies.begin(), records.frequencies.end(),
                    [](int64_t frequency) { return frequency == 4; }));
}

TEST_CASE("counts are exact when lookups of one key run together") {
  const auto table = EqualColumns();
  std::vector<std::function<int()>> bodies;
  for (int t = 0; t < 4; ++t) {
    bodies.push_back([&] {
      const std::vector<int64_t> keys(100, 7);
      std::vector<float> rows(100 * kDim);
      int failures = 0;
      for (int i = 0; i < 50; ++i) {
        failures += !table
                         ->FindOrInsert(keys.data(), 100, rows.data(), nullptr,
                                        nullptr, Serial())
                         .ok();
      }
      return failures;
    });
  }
  CHECK(RunTogether(bodies) == 0);
  CHECK(testing::ExportAll(*table).frequencies ==
        std::vector<int64_t>{4 * 100 * 50});
}

TEST_CASE("pooled lookups run beside removals and changes of slots") {
  ThreadPool pool(2);
  const auto table = EqualColumns();
  const ParallelFor parallel = pool.parallel();
  const auto pooled = [&](uint32_t seed) {
    std::mt19937 random(seed);
    int failures = 0;
    std::vector<int64_t> splits(51);
    for (size_t b = 0; b < splits.size(); ++b) {
      splits[b] = static_cast<int64_t>(b) * 10;
    }
    for (int round = 0; round < kRounds; ++round) {
      const std::vector<int64_t> keys = RandomKeys(random, 500);
      std::vector<float> sums(50 * kDim);
      std::vector<int64_t> positions(500);
      const Bags bags = {keys.data(), nullptr, splits.data(), 50,
                         Combiner::kMean};
      failures += !table
                       ->FindOrInsertPooled(bags, sums.data(), positions.data(),
                                            parallel)
                       .ok();
      failures += !ColumnsEqual(sums);
      failures += std::count(positions.begin(), positions.end(), -1) > 0;
      std::vector<int64_t> unique;
      std::vector<float> grads;
      failures +=
          !table
               ->PooledGradient(
                   bags, positions.data(), sums.data(),
                   internal::ToVectors(table->dim(), &unique, &grads), parallel)
               .ok();
      failures += !table
                       ->AccumulateGradients(
                           unique.data(), static_cast<int64_t>(unique.size()),
                           grads.data())
                       .ok();
    }
    return failures;
  };
  const auto slots = [&] {
    int failures = 0;
    for (int round = 0; round < kRounds; ++round) {
      const int64_t width = round % 2 == 0 ? 1 : kDim;
      failures += !table->SetSlots({{"a", width, 1.0f}}, nullptr).ok();
      std::vector<int64_t> positions;
      std::vector<float> grads;
      failures += !table->TakeGradients(&positions, &grads).ok();
    }
    return failures;
  };
  CHECK(RunTogether({[&] { return pooled(1); }, [&] { return pooled(2); },
                     [&] { return RemoveKeys(*table, 3); }, slots,
                     [&] { return ReadRows(*table, 5); }}) == 0);
}

TEST_CASE("restriction and eviction run beside everything else") {
  ThreadPool pool(3);
  TableOptions options = testing::UniformOptions(kDim);
  options.initializer = InitializerSpec();
  options.max_capacity = 1500;  // the keys are 4000
  const auto table = MakeTable(options);
  const ParallelFor parallel = pool.parallel();
  const auto restrict = [&] {
    int failures = 0;
    for (int round = 0; round < kRounds; ++round) {
      const auto order =
          round % 2 == 0 ? EvictionOrder::kRecency : EvictionOrder::kFrequency;
      std::vector<int64_t> removed;
      failures += !table->Restrict(500, order, &removed, parallel).ok();
      const std::set<int64_t> unique(removed.begin(), removed.end());
      failures += unique.size() != removed.size();
    }
    return failures;
  };
  const auto count = [&] {
    std::mt19937 random(9);
    int failures = 0;
    for (int round = 0; round < kRounds; ++round) {
      const std::vector<int64_t> keys = RandomKeys(random, 500);
      std::vector<int64_t> frequencies(500), last_steps(500);
      failures += !table->CountUses(keys.data(), 500, Serial()).ok();
      failures += !table
                       ->Uses(keys.data(), 500, frequencies.data(),
                              last_steps.data(), nullptr, Serial())
                       .ok();
      failures += table->size() > 1500;
    }
    return failures;
  };
  CHECK(RunTogether({[&] { return Train(*table, 1, parallel); },
                     [&] { return Train(*table, 2, Serial()); }, restrict,
                     count, [&] { return ReadRows(*table, 3); },
                     [&] { return RemoveKeys(*table, 4); },
                     [&] { return Scan(*table); }}) == 0);
  const Statistics s = table->statistics();
  CHECK(s.size == s.inserts - s.removes - s.evictions);
  const RecordBatch records = testing::ExportAll(*table);
  const std::set<int64_t> keys(records.keys.begin(), records.keys.end());
  CHECK(keys.size() == records.keys.size());
  CHECK(s.size == static_cast<int64_t>(keys.size()));
}

}  // namespace
}  // namespace embedra
