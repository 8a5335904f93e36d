// Each method of Table, by example. Random sequences are in table_model_test.

#include "embedra/core/table.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "doctest/doctest.h"
#include "embedra/core/test_util.h"
#include "embedra/core/thread_pool.h"

namespace embedra {
namespace {

using testing::ExportAll;
using testing::Find;
using testing::FindOrInsert;
using testing::Frequencies;
using testing::Lookup;
using testing::MakeTable;
using testing::Range;
using testing::Remove;
using testing::UniformOptions;

constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

TEST_CASE("a key is absent, then present, with the same initial row") {
  const auto table = MakeTable(4);
  const Lookup before = Find(*table, {5});
  CHECK(before.found == std::vector<bool>{false});
  CHECK(before.positions == std::vector<int64_t>{Table::kNoPosition});
  CHECK(table->size() == 0);
  const Lookup insert = FindOrInsert(*table, {5});
  CHECK(insert.found == std::vector<bool>{false});
  CHECK(insert.rows == before.rows);
  const Lookup after = Find(*table, {5});
  CHECK(after.found == std::vector<bool>{true});
  CHECK(after.rows == before.rows);
  CHECK(after.positions == insert.positions);
  CHECK(table->size() == 1);
  CHECK(table->position_bound() == insert.positions[0] + 1);
}

TEST_CASE("every key is legal, those at the ends too") {
  const auto table = MakeTable(3);
  const std::vector<int64_t> keys = {0, -1, 1, kMin, kMax, kMin + 1, kMax - 1};
  const Lookup insert = FindOrInsert(*table, keys);
  CHECK(table->size() == 7);
  CHECK(Find(*table, keys).rows == insert.rows);
  CHECK(Remove(*table, {kMin, 0}) == 2);
  CHECK(Find(*table, {kMin, 0, kMax, -1}).found ==
        std::vector<bool>{false, false, true, true});
}

TEST_CASE("repeats in a batch make one record and count each time") {
  const auto table = MakeTable(4);
  const Lookup insert = FindOrInsert(*table, {1, 1, 1, 2});
  CHECK(insert.found == std::vector<bool>(4, false));
  CHECK(table->size() == 2);
  CHECK(insert.positions[0] == insert.positions[2]);
  CHECK(insert.positions[0] != insert.positions[3]);
  const std::vector<float> rows = insert.floats();
  CHECK(std::equal(rows.begin(), rows.begin() + 4, rows.begin() + 8));
  CHECK(Frequencies(*table) == std::map<int64_t, int64_t>{{1, 3}, {2, 1}});
  FindOrInsert(*table, {2, 1, 2});
  CHECK(Frequencies(*table) == std::map<int64_t, int64_t>{{1, 4}, {2, 3}});
}

TEST_CASE("reading lookups count nothing in the records") {
  const auto table = MakeTable(4);
  FindOrInsert(*table, {1});
  Find(*table, {1, 1, 2});
  CHECK(Frequencies(*table) == std::map<int64_t, int64_t>{{1, 1}});
  CHECK(table->size() == 1);
}

TEST_CASE("training lookups note the step of the table") {
  const auto table = MakeTable(2);
  table->set_step(41);
  FindOrInsert(*table, {1, 2});
  table->set_step(42);
  FindOrInsert(*table, {2});
  CHECK(table->step() == 42);
  const RecordBatch records = ExportAll(*table);
  for (size_t i = 0; i < 2; ++i) {
    CHECK(records.last_steps[i] == (records.keys[i] == 1 ? 41 : 42));
  }
}

TEST_CASE("absent keys get the default row when asked") {
  const auto table = MakeTable(2);
  FindOrInsert(*table, {1});
  const float fallback[2] = {7.0f, 8.0f};
  const int64_t keys[2] = {1, 2};
  float rows[4];
  EMBEDRA_REQUIRE_OK(table->Find(keys, 2, MissingRow::kDefault, fallback, rows,
                                 nullptr, nullptr, Serial()));
  CHECK(rows[0] == Find(*table, {1}).floats()[0]);
  CHECK(rows[2] == 7.0f);
  CHECK(rows[3] == 8.0f);
  CHECK(table
            ->Find(keys, 2, MissingRow::kDefault, nullptr, rows, nullptr,
                   nullptr, Serial())
            .code() == StatusCode::kInvalidArgument);
}

TEST_CASE("missing keys are listed once, in order of appearance") {
  const auto table = MakeTable(2);
  FindOrInsert(*table, {3, 4});
  const std::vector<int64_t> keys = {9, 3, kMin, 9, 4, 7, kMin};
  std::vector<int64_t> missing;
  EMBEDRA_REQUIRE_OK(table->FindMissing(keys.data(), 7, &missing));
  CHECK(missing == std::vector<int64_t>{9, kMin, 7});
  EMBEDRA_REQUIRE_OK(table->FindMissing(nullptr, 0, &missing));
  CHECK(missing.empty());
}

TEST_CASE("assigning: the last row of a repeated key wins") {
  const auto table = MakeTable(1);
  const int64_t keys[3] = {1, 2, 1};
  const float rows[3] = {1.0f, 2.0f, 3.0f};
  EMBEDRA_REQUIRE_OK(table->Assign(keys, 3, rows, false, Serial()));
  CHECK(Find(*table, {1, 2}).floats() == std::vector<float>{3.0f, 2.0f});
}

TEST_CASE("assigning only missing keys keeps the rows there are") {
  const auto table = MakeTable(1);
  const int64_t keys[3] = {1, 2, 2};
  const float first[1] = {5.0f};
  const float rows[3] = {1.0f, 2.0f, 3.0f};
  EMBEDRA_REQUIRE_OK(table->Assign(keys, 1, first, false, Serial()));
  EMBEDRA_REQUIRE_OK(table->Assign(keys, 3, rows, true, Serial()));
  CHECK(Find(*table, {1, 2}).floats() == std::vector<float>{5.0f, 2.0f});
}

TEST_CASE("assigning keeps slots, and new records get initial ones") {
  TableOptions options = UniformOptions(1);
  options.slots = {{"s", 1, 0.5f}};
  const auto table = MakeTable(options);
  const Lookup one = FindOrInsert(*table, {1});
  const float value[1] = {9.0f};
  const std::vector<const float*> values = {value};
  EMBEDRA_REQUIRE_OK(table->WriteRecords(one.positions.data(), 1, {"s"}, value,
                                         values, Serial()));
  const int64_t keys[2] = {1, 2};
  const float rows[2] = {1.0f, 2.0f};
  EMBEDRA_REQUIRE_OK(table->Assign(keys, 2, rows, false, Serial()));
  const RecordBatch records = ExportAll(*table);
  for (size_t i = 0; i < 2; ++i) {
    CHECK(records.slots[i] == (records.keys[i] == 1 ? 9.0f : 0.5f));
  }
}

TEST_CASE("accumulating starts absent keys from their initial row") {
  const auto table = MakeTable(2);
  const std::vector<float> initial = Find(*table, {4}).floats();
  const int64_t keys[2] = {4, 4};
  const float deltas[4] = {1.0f, 2.0f, 0.5f, 0.25f};
  EMBEDRA_REQUIRE_OK(table->Accumulate(keys, 2, deltas, Serial()));
  CHECK(
      Find(*table, {4}).floats() ==
      std::vector<float>{initial[0] + 1.0f + 0.5f, initial[1] + 2.0f + 0.25f});
}

TEST_CASE("removing counts what was there") {
  const auto table = MakeTable(2);
  FindOrInsert(*table, Range(0, 10));
  CHECK(Remove(*table, {3, 3, 99, 4}) == 2);
  CHECK(table->size() == 8);
  EMBEDRA_REQUIRE_OK(table->Remove(nullptr, 0, nullptr));
}

// Position reuse must not carry over row or slots.
TEST_CASE("a key that returns starts afresh, at an old position too") {
  float initial = 0.25f;
  SUBCASE("slots from 0.25") {}
  SUBCASE("slots from 0") { initial = 0.0f; }
  TableOptions options = UniformOptions(2);
  options.slots = {{"momentum", 2, initial}};
  const auto table = MakeTable(options);
  const Lookup first = FindOrInsert(*table, Range(0, 100));
  const std::vector<float> junk(200, 123.0f);
  const std::vector<const float*> slots = {junk.data()};
  EMBEDRA_REQUIRE_OK(table->WriteRecords(
      first.positions.data(), 100, {"momentum"}, junk.data(), slots, Serial()));
  CHECK(Remove(*table, Range(0, 100)) == 100);
  for (int i = 0; i < Table::kReuseDelay; ++i) Remove(*table, {});
  const Lookup again = FindOrInsert(*table, Range(50, 100));
  CHECK(table->position_bound() == 100);
  CHECK(again.rows == Find(*MakeTable(options), Range(50, 100)).rows);
  const RecordBatch records = ExportAll(*table);
  CHECK(records.slots == std::vector<float>(200, initial));
  CHECK(records.frequencies == std::vector<int64_t>(100, 1));
}

TEST_CASE("a freed position is not handed out before its time") {
  const auto table = MakeTable(2);
  const Lookup first = FindOrInsert(*table, {1});
  Remove(*table, {1});
  for (int64_t i = 0; i < Table::kReuseDelay - 1; ++i) {
    CHECK(FindOrInsert(*table, {1000 + i}).positions[0] != first.positions[0]);
  }
  CHECK(FindOrInsert(*table, {2}).positions[0] == first.positions[0]);
}

TEST_CASE("clearing removes records and keeps the rest") {
  TableOptions options = UniformOptions(2);
  options.slots = {{"momentum", 2, 0.25f}};
  const auto table = MakeTable(options);
  const Lookup first = FindOrInsert(*table, Range(0, 1000));
  table->set_step(9);
  EMBEDRA_REQUIRE_OK(table->Clear());
  CHECK(table->size() == 0);
  CHECK(table->step() == 9);
  CHECK(table->slots() == options.slots);
  CHECK(table->statistics().removes == 1000);
  CHECK(ExportAll(*table).keys.empty());
  CHECK(Find(*table, {5}).found == std::vector<bool>{false});
  const Lookup second = FindOrInsert(*table, Range(0, 1000));
  CHECK(second.rows == first.rows);
  CHECK(*std::min_element(second.positions.begin(), second.positions.end()) >=
        1000);
}

TEST_CASE("positions stay while the table grows") {
  const auto table = MakeTable(4);
  const Lookup first = FindOrInsert(*table, Range(0, 1000));
  FindOrInsert(*table, Range(1000, 200000));
  const Lookup again = Find(*table, Range(0, 1000));
  CHECK(again.positions == first.positions);
  CHECK(again.rows == first.rows);
}

TEST_CASE("contents are right at every size") {
  const auto table = MakeTable(1);
  ThreadPool pool(3);
  int64_t size = 0;
  for (int64_t batch = 1; size < 300000; batch = batch * 5 / 4 + 1) {
    const std::vector<int64_t> keys = Range(size, batch);
    const Lookup insert = FindOrInsert(*table, keys, pool.parallel());
    size += batch;
    REQUIRE(table->size() == size);
    REQUIRE(table->position_bound() == size);
    REQUIRE(Find(*table, keys).rows == insert.rows);
  }
  const Lookup all = Find(*table, Range(0, size));
  CHECK(std::count(all.found.begin(), all.found.end(), true) == size);
  const Lookup none = Find(*table, Range(size, 1000));
  CHECK(std::count(none.found.begin(), none.found.end(), true) == 0);
}

TEST_CASE("reserving makes room and changes nothing else") {
  TableOptions options = UniformOptions(4);
  options.initial_capacity = 5000;
  const auto table = MakeTable(options);
  CHECK(table->statistics().capacity >= 5000);
  EMBEDRA_REQUIRE_OK(table->Reserve(20000));
  const int64_t capacity = table->statistics().capacity;
  CHECK(capacity >= 20000);
  FindOrInsert(*table, Range(0, 20000));
  CHECK(table->statistics().capacity == capacity);
  EMBEDRA_REQUIRE_OK(table->Reserve(10));
  CHECK(table->Reserve(-1).code() == StatusCode::kInvalidArgument);
}

TEST_CASE("statistics count what happened") {
  const auto table = MakeTable(4);
  FindOrInsert(*table, {1, 2, 2});
  Find(*table, {1, 9});
  Remove(*table, {1, 7});
  const Statistics s = table->statistics();
  CHECK(s.size == 1);
  CHECK(s.inserts == 2);
  CHECK(s.removes == 1);
  CHECK(s.hits == 1);
  CHECK(s.misses == 4);
  CHECK(s.capacity >= s.size);
  CHECK(s.bytes > 0);
  CHECK(s.load_factor > 0.0);
  CHECK(s.load_factor <= 0.8);
}

TEST_CASE("the outcome does not depend on the number of threads") {
  std::vector<int64_t> keys = Range(0, 50000);
  for (size_t i = 0; i < keys.size(); ++i) {
    keys[i] = static_cast<int64_t>(i * i % 30011);
  }
  const auto serial = MakeTable(8);
  const Lookup expected = FindOrInsert(*serial, keys);
  for (const int threads : {2, 5}) {
    ThreadPool pool(threads);
    const auto table = MakeTable(8);
    const Lookup got = FindOrInsert(*table, keys, pool.parallel());
    CHECK(got.rows == expected.rows);
    CHECK(got.positions == expected.positions);
    CHECK(ExportAll(*table).keys == ExportAll(*serial).keys);
  }
}

TEST_CASE("options are checked, and the message names table and field") {
  std::unique_ptr<Table> table;
  const auto message = [&](const TableOptions& options) {
    const Status status = Table::Create(options, &table);
    CHECK(status.code() == StatusCode::kInvalidArgument);
    return status.message();
  };
  TableOptions options = UniformOptions(4);
  options.dim = 0;
  CHECK(message(options).find("table 'items': dim") == 0);
  options = UniformOptions(4);
  options.name.clear();
  CHECK(message(options).find("name") != std::string::npos);
  options = UniformOptions(4);
  options.initial_capacity = -5;
  CHECK(message(options).find("initial_capacity") != std::string::npos);
  options = UniformOptions(4);
  options.initializer.parameters = {1.0f};
  CHECK(message(options).find("initializer uniform") != std::string::npos);
  options = UniformOptions(4);
  options.slots = {{"m", 3, 0.0f}};
  CHECK(message(options).find("slot 'm'") != std::string::npos);
  CHECK(table == nullptr);
}

TEST_CASE("bad batches are refused and empty ones do nothing") {
  const auto table = MakeTable(4);
  float row[4];
  const int64_t key = 1;
  CHECK_FALSE(
      table->FindOrInsert(&key, -1, row, nullptr, nullptr, Serial()).ok());
  CHECK_FALSE(
      table->FindOrInsert(nullptr, 1, row, nullptr, nullptr, Serial()).ok());
  CHECK_FALSE(
      table->FindOrInsert(&key, 1, nullptr, nullptr, nullptr, Serial()).ok());
  CHECK(table->size() == 0);
  EMBEDRA_REQUIRE_OK(
      table->FindOrInsert(nullptr, 0, nullptr, nullptr, nullptr, Serial()));
  EMBEDRA_REQUIRE_OK(table->Accumulate(nullptr, 0, nullptr, Serial()));
  EMBEDRA_REQUIRE_OK(table->Import({}, Serial()));
  EMBEDRA_REQUIRE_OK(table->Update({}, nullptr, 0, nullptr, Serial(), nullptr));
}

}  // namespace
}  // namespace embedra
