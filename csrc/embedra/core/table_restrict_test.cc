// Restriction and bounded tables against a sorted list of all records.

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <tuple>
#include <vector>

#include "doctest/doctest.h"
#include "embedra/core/table.h"
#include "embedra/core/test_util.h"
#include "embedra/core/thread_pool.h"

namespace embedra {
namespace {

using testing::ExportAll;
using testing::Find;
using testing::FindOrInsert;
using testing::Lookup;
using testing::MakeTable;
using testing::Range;

constexpr EvictionOrder kOrders[] = {EvictionOrder::kRecency,
                                     EvictionOrder::kFrequency};

TableOptions BoundedOptions(int64_t max_capacity,
                            EvictionOrder order = EvictionOrder::kRecency) {
  TableOptions options = testing::UniformOptions(2);
  options.max_capacity = max_capacity;
  options.eviction = order;
  return options;
}

std::set<int64_t> KeysOf(const Table& table) {
  const RecordBatch records = ExportAll(table);
  return {records.keys.begin(), records.keys.end()};
}

// The keys of `records`, lowest first.
std::vector<int64_t> InOrder(const RecordBatch& records, EvictionOrder order) {
  std::vector<std::tuple<int64_t, int64_t, int64_t>> scores;
  for (size_t i = 0; i < records.keys.size(); ++i) {
    int64_t first = records.last_steps[i], second = records.frequencies[i];
    if (order == EvictionOrder::kFrequency) std::swap(first, second);
    scores.emplace_back(first, second, records.keys[i]);
  }
  std::sort(scores.begin(), scores.end());
  std::vector<int64_t> keys;
  for (const auto& score : scores) keys.push_back(std::get<2>(score));
  return keys;
}

std::vector<int64_t> Restrict(Table& table, int64_t max_records,
                              EvictionOrder order,
                              const ParallelFor& parallel = Serial()) {
  std::vector<int64_t> removed;
  EMBEDRA_REQUIRE_OK(table.Restrict(max_records, order, &removed, parallel));
  return removed;
}

void Import(Table& table, const std::vector<int64_t>& keys,
            const std::vector<int64_t>& frequencies,
            const std::vector<int64_t>& last_steps) {
  const std::vector<float> rows(keys.size() * 2, 1.0f);
  RecordColumns columns;
  columns.size = static_cast<int64_t>(keys.size());
  columns.keys = keys.data();
  columns.rows = rows.data();
  columns.frequencies = frequencies.data();
  columns.last_steps = last_steps.data();
  EMBEDRA_REQUIRE_OK(table.Import(columns, Serial()));
}

// Fills a table with `count` records whose counters are below `range`.
void Fill(Table& table, int64_t count, uint32_t range, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<int64_t> keys, frequencies, last_steps;
  for (int64_t i = 0; i < count; ++i) {
    keys.push_back((i - count / 2) * 7919);
    frequencies.push_back(random() % range);
    last_steps.push_back(random() % range);
  }
  std::shuffle(keys.begin(), keys.end(), random);
  Import(table, keys, frequencies, last_steps);
}

TEST_CASE("restriction keeps the highest records, whatever the ties") {
  ThreadPool pool(3);
  for (const ParallelFor& parallel : {Serial(), pool.parallel()}) {
    for (const EvictionOrder order : kOrders) {
      for (const uint32_t range : {1u, 2u, 30u, 1000000u}) {
        for (const int64_t kept : {0, 1, 700, 1999, 2000, 3000}) {
          const auto table = MakeTable(2);
          Fill(*table, 2000, range, static_cast<uint32_t>(kept) + range);
          testing::Remove(*table, {0, 7919});  // holes
          const std::vector<int64_t> all = InOrder(ExportAll(*table), order);
          const size_t removed =
              static_cast<size_t>(std::max<int64_t>(1998 - kept, 0));
          const std::vector<int64_t> gone =
              Restrict(*table, kept, order, parallel);
          CHECK(gone.size() == removed);
          CHECK(std::set<int64_t>(gone.begin(), gone.end()) ==
                std::set<int64_t>(all.begin(), all.begin() + removed));
          CHECK(KeysOf(*table) ==
                std::set<int64_t>(all.begin() + removed, all.end()));
          CHECK(table->size() == static_cast<int64_t>(1998 - removed));
          const Lookup lookup = Find(*table, all, parallel);
          for (size_t i = 0; i < all.size(); ++i) {
            CHECK(lookup.found[i] == (i >= removed));
          }
        }
      }
    }
  }
}

TEST_CASE("restriction of an empty table, and to a negative size") {
  const auto table = MakeTable(2);
  CHECK(Restrict(*table, 0, EvictionOrder::kRecency).empty());
  const Status status =
      table->Restrict(-1, EvictionOrder::kRecency, nullptr, Serial());
  CHECK(status.code() == StatusCode::kInvalidArgument);
  CHECK(status.message().find("'items'") != std::string::npos);
}

TEST_CASE("keys that restriction dropped start from the beginning") {
  TableOptions options = testing::UniformOptions(2);
  options.slots = {{"m", 2, 0.5f}};
  const auto table = MakeTable(options);
  const std::vector<float> initial = Find(*table, {1}).floats();
  RowOptimizer adagrad;
  adagrad.kind = OptimizerKind::kAdagrad;
  adagrad.learning_rate = 0.1f;
  adagrad.initial_accumulator = 0.25f;
  const Lookup lookup = FindOrInsert(*table, {1, 2});
  const std::vector<float> grads(4, 1.0f);
  EMBEDRA_REQUIRE_OK(table->Update(adagrad, lookup.positions.data(), 2,
                                   grads.data(), Serial(), nullptr));
  CHECK(Restrict(*table, 1, EvictionOrder::kRecency) ==
        std::vector<int64_t>{1});
  CHECK(Find(*table, {1}).floats() == initial);
  // Also on memory that other records have used.
  for (int64_t i = 0; i < 2 * Table::kReuseDelay; ++i) {
    FindOrInsert(*table, {100});
    testing::Remove(*table, {100});
  }
  CHECK(FindOrInsert(*table, {1}).floats() == initial);
  const RecordBatch records = ExportAll(*table);
  for (size_t i = 0; i < records.keys.size(); ++i) {
    if (records.keys[i] != 1) continue;
    CHECK(records.slots[2 * i] == 0.25f);
    CHECK(records.frequencies[i] == 1);
  }
}

TEST_CASE("gradients of records that restriction dropped are dropped") {
  const auto table = MakeTable(2);
  const Lookup lookup = FindOrInsert(*table, {1, 2});
  Restrict(*table, 1, EvictionOrder::kRecency);
  FindOrInsert(*table, {3});
  const std::vector<float> before = Find(*table, {3}).floats();
  RowOptimizer sgd;
  sgd.learning_rate = 1.0f;
  const std::vector<float> grads(4, 1.0f);
  EMBEDRA_REQUIRE_OK(table->Update(sgd, lookup.positions.data(), 2,
                                   grads.data(), Serial(), nullptr));
  CHECK(table->statistics().stale_gradients == 1);
  CHECK(table->statistics().updates == 1);
  CHECK(table->statistics().removes == 1);
  CHECK(Find(*table, {3}).floats() == before);
}

TEST_CASE("uses are counted where keys are, at a step of their own") {
  ThreadPool pool(3);
  const auto table = MakeTable(2);
  FindOrInsert(*table, {1, 2, 3});
  const std::vector<int64_t> keys = {1, 1, 1, 2, 9};
  EMBEDRA_REQUIRE_OK(table->CountUses(keys.data(), 5, pool.parallel()));
  CHECK(table->step() == 1);
  CHECK(table->size() == 3);
  int64_t frequencies[5], last_steps[5];
  bool found[5];
  const std::vector<int64_t> asked = {1, 2, 3, 9, 1};
  EMBEDRA_REQUIRE_OK(table->Uses(asked.data(), 5, frequencies, last_steps,
                                 found, pool.parallel()));
  CHECK(std::vector<int64_t>(frequencies, frequencies + 5) ==
        std::vector<int64_t>{4, 2, 1, 0, 4});
  CHECK(std::vector<int64_t>(last_steps, last_steps + 5) ==
        std::vector<int64_t>{1, 1, 0, 0, 1});
  CHECK(found[2]);
  CHECK(!found[3]);
  CHECK(Restrict(*table, 2, EvictionOrder::kRecency) ==
        std::vector<int64_t>{3});
}

// ---- Bounded tables

TEST_CASE("options with a negative bound are refused") {
  std::unique_ptr<Table> table;
  const Status status = Table::Create(BoundedOptions(-1), &table);
  CHECK(status.code() == StatusCode::kInvalidArgument);
  CHECK(status.message().find("max_capacity") != std::string::npos);
}

TEST_CASE("a full table drops the lowest records, in blocks") {
  ThreadPool pool(3);
  for (const EvictionOrder order : kOrders) {
    const auto table = MakeTable(BoundedOptions(160, order));
    std::mt19937 random(3);
    std::set<int64_t> known;
    for (int64_t step = 1; step < 300; ++step) {
      table->set_step(step);
      std::vector<int64_t> batch(1 + random() % 40);
      for (int64_t& key : batch) key = random() % 600;
      const RecordBatch before = ExportAll(*table);
      const Lookup lookup = FindOrInsert(*table, batch, pool.parallel());
      const std::set<int64_t> wanted(batch.begin(), batch.end());
      const std::set<int64_t> after = KeysOf(*table);
      CHECK(table->size() <= 160);
      CHECK(std::includes(after.begin(), after.end(), wanted.begin(),
                          wanted.end()));
      // Every position is that of its key, and was not another's just before.
      std::vector<int64_t> keys(batch.size());
      const std::unique_ptr<bool[]> alive(new bool[batch.size()]);
      EMBEDRA_REQUIRE_OK(table->Keys(lookup.positions.data(),
                                     static_cast<int64_t>(batch.size()),
                                     keys.data(), alive.get()));
      CHECK(keys == batch);
      CHECK(Find(*table, batch).rows == lookup.rows);
      // Those that went are the lowest of those not in the batch.
      std::set<int64_t> gone, expected;
      for (const int64_t key : before.keys) {
        if (after.count(key) == 0) gone.insert(key);
      }
      for (const int64_t key : InOrder(before, order)) {
        if (expected.size() == gone.size()) break;
        if (wanted.count(key) == 0) expected.insert(key);
      }
      CHECK(gone == expected);
      if (!gone.empty()) CHECK(table->size() == 150);
    }
    const Statistics s = table->statistics();
    CHECK(s.evictions > 300);
    CHECK(s.size == s.inserts - s.evictions - s.removes);
  }
}

TEST_CASE(
    "a batch that does not fit changes nothing; one that just fits does") {
  const auto table = MakeTable(BoundedOptions(10));
  FindOrInsert(*table, Range(0, 8));
  const RecordBatch before = ExportAll(*table);
  std::vector<int64_t> keys = Range(5, 11);  // 3 there, 8 not
  std::vector<float> rows(keys.size() * 2);
  Status status = table->Assign(keys.data(), 11, rows.data(), false, Serial());
  CHECK(status.code() == StatusCode::kInvalidArgument);
  CHECK(status.message().find("11 distinct keys") != std::string::npos);
  status = table->FindOrInsert(keys.data(), 11, rows.data(), nullptr, nullptr,
                               Serial());
  CHECK(status.code() == StatusCode::kInvalidArgument);
  CHECK(ExportAll(*table).keys == before.keys);
  CHECK(ExportAll(*table).rows == before.rows);
  keys.resize(10);
  keys.insert(keys.end(), 30, 5);  // repeats do not count
  FindOrInsert(*table, keys);
  CHECK(KeysOf(*table) == std::set<int64_t>(keys.begin(), keys.end()));
}

TEST_CASE("pooled lookups, assign and accumulate keep to the bound") {
  const auto table = MakeTable(BoundedOptions(32));
  for (int64_t step = 0; step < 40; ++step) {
    table->set_step(step);
    const std::vector<int64_t> keys = {step - 1, step * 5 + 1000, step,
                                       step * 5 + 1001};
    const std::vector<int64_t> splits = {0, 1, 4};
    std::vector<float> pooled(4);
    std::vector<int64_t> positions(4);
    const Bags bags = {keys.data(), nullptr, splits.data(), 2, Combiner::kSum};
    EMBEDRA_REQUIRE_OK(table->FindOrInsertPooled(bags, pooled.data(),
                                                 positions.data(), Serial()));
    const std::vector<float> rows = Find(*table, keys).floats();
    CHECK(Find(*table, keys).positions == positions);
    CHECK(pooled[0] == rows[0]);
    CHECK(pooled[2] == rows[2] + rows[4] + rows[6]);
    CHECK(table->size() <= 32);
    const std::vector<int64_t> more = {step * 5 + 1002, step * 5 + 1003};
    const std::vector<float> values(4, 2.0f);
    EMBEDRA_REQUIRE_OK(
        table->Assign(more.data(), 1, values.data(), false, Serial()));
    EMBEDRA_REQUIRE_OK(
        table->Accumulate(more.data() + 1, 1, values.data(), Serial()));
    CHECK(Find(*table, more).found == std::vector<bool>{true, true});
    CHECK(table->size() <= 32);
  }
  CHECK(table->statistics().evictions > 100);
}

TEST_CASE("imports keep exactly the highest of all records") {
  for (const EvictionOrder order : kOrders) {
    const auto all = MakeTable(2);
    Fill(*all, 1000, 50, 11);
    const std::vector<int64_t> ordered = InOrder(ExportAll(*all), order);
    for (const int64_t chunk : {7, 100, 333, 1000}) {
      const auto table = MakeTable(BoundedOptions(100, order));
      for (int64_t cursor = 0; cursor < all->position_bound();) {
        RecordBatch batch;
        EMBEDRA_REQUIRE_OK(all->Export(&cursor, chunk, &batch));
        Import(*table, batch.keys, batch.frequencies, batch.last_steps);
        CHECK(table->size() <= 100);
      }
      CHECK(KeysOf(*table) ==
            std::set<int64_t>(ordered.end() - 100, ordered.end()));
      CHECK(table->statistics().evictions == 900);
      // Records that came and went in one call have left no hole.
      if (chunk == 1000) {
        FindOrInsert(*table, {-5});
        CHECK(table->position_bound() == 1000);
      }
    }
  }
}

TEST_CASE("a bounded table of removed and re-inserted keys stays exact") {
  TableOptions options = BoundedOptions(64);
  options.slots = {{"m", 2, 0.5f}};
  const auto table = MakeTable(options);
  const std::vector<float> initial = Find(*table, {3}).floats();
  FindOrInsert(*table, Range(0, 64));
  const std::vector<float> ones(2, 1.0f);
  const std::vector<int64_t> key = {3};
  EMBEDRA_REQUIRE_OK(
      table->Assign(key.data(), 1, ones.data(), false, Serial()));
  CHECK(testing::Remove(*table, Range(0, 10)) == 10);
  CHECK(testing::Remove(*table, {3, 1000}) == 0);
  FindOrInsert(*table, Range(100, 9));
  CHECK(FindOrInsert(*table, {3}).floats() == initial);
  CHECK(table->size() == 64);
  CHECK(table->statistics().evictions == 0);
}

}  // namespace
}  // namespace embedra
