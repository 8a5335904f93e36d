// Whole records: slots, reading and writing by position, export and import.

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "doctest/doctest.h"
#include "embedra/core/test_util.h"

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

TEST_CASE("changing slots keeps those of the same name and width") {
  TableOptions options = UniformOptions(2);
  options.slots = {{"a", 2, 1.0f}, {"b", 1, 2.0f}, {"c", 2, 3.0f}};
  const auto table = MakeTable(options);
  const Lookup first = FindOrInsert(*table, Range(0, 3000));
  Remove(*table, Range(0, 1000));
  std::vector<std::string> dropped;
  EMBEDRA_REQUIRE_OK(table->SetSlots(
      {{"c", 2, 3.0f}, {"a", 1, 4.0f}, {"d", 1, 5.0f}}, &dropped));
  CHECK(dropped == std::vector<std::string>{"a", "b"});  // a: another width
  const Lookup after = Find(*table, Range(1000, 2000));
  CHECK(std::equal(after.positions.begin(), after.positions.end(),
                   first.positions.begin() + 1000));
  CHECK(std::equal(after.rows.begin(), after.rows.end(),
                   first.rows.begin() + 1000 * 8));
  const RecordBatch records = ExportAll(*table);
  CHECK(records.keys.size() == 2000);
  CHECK(std::vector<float>(records.slots.begin(), records.slots.begin() + 4) ==
        std::vector<float>{3.0f, 3.0f, 4.0f, 5.0f});
  CHECK(table->SetSlots({{"x", 3, 0.0f}}, nullptr).code() ==
        StatusCode::kInvalidArgument);
  CHECK(table->SetSlots({{"x", 1, 0}, {"x", 2, 0}}, nullptr).code() ==
        StatusCode::kInvalidArgument);
}

TEST_CASE("another initial value counts for new records only") {
  TableOptions options = UniformOptions(2);
  options.slots = {{"a", 1, 1.0f}, {"b", 1, 2.0f}};
  const auto table = MakeTable(options);
  FindOrInsert(*table, {1});
  std::vector<std::string> dropped;
  EMBEDRA_REQUIRE_OK(
      table->SetSlots({{"a", 1, 3.0f}, {"b", 1, 2.0f}}, &dropped));
  CHECK(dropped.empty());
  FindOrInsert(*table, {2});
  const RecordBatch records = ExportAll(*table);
  CHECK(records.keys == std::vector<int64_t>{1, 2});
  CHECK(records.slots == std::vector<float>{1.0f, 2.0f, 3.0f, 2.0f});
  // The same two, in another order.
  EMBEDRA_REQUIRE_OK(
      table->SetSlots({{"b", 1, 2.0f}, {"a", 1, 3.0f}}, &dropped));
  CHECK(dropped.empty());
  CHECK(ExportAll(*table).slots == std::vector<float>{2.0f, 1.0f, 2.0f, 3.0f});
}

TEST_CASE("records are read and written by position, gone ones passed over") {
  TableOptions options = UniformOptions(2);
  options.slots = {{"a", 2, 1.0f}, {"b", 1, 2.0f}};
  const auto table = MakeTable(options);
  const Lookup lookup = FindOrInsert(*table, {1, 2, 3});
  Remove(*table, {2});
  const std::vector<float> rows = {1, 2, 3, 4, 5, 6};
  const std::vector<float> b = {7, 8, 9};
  EMBEDRA_REQUIRE_OK(table->WriteRecords(lookup.positions.data(), 3, {"b"},
                                         rows.data(), {b.data()}, Serial()));
  std::vector<float> read(6);
  std::vector<float> read_a(6);
  std::vector<float> read_b(3);
  EMBEDRA_REQUIRE_OK(
      table->ReadRecords(lookup.positions.data(), 3, {"b", "a"}, read.data(),
                         {read_b.data(), read_a.data()}, Serial()));
  CHECK(read == std::vector<float>{1, 2, 0, 0, 5, 6});
  CHECK(read_a == std::vector<float>{1, 1, 0, 0, 1, 1});
  CHECK(read_b == std::vector<float>{7, 0, 9});
  const Status status =
      table->ReadRecords(lookup.positions.data(), 3, {"z"}, read.data(),
                         {read_b.data()}, Serial());
  CHECK(status.code() == StatusCode::kInvalidArgument);
  CHECK(status.message() ==
        "table 'items': there is no slot 'z'; the table keeps 'a' 'b'");
  CHECK(table
            ->ReadRecords(lookup.positions.data(), 3, {"a"}, read.data(), {},
                          Serial())
            .code() == StatusCode::kInvalidArgument);
}

TEST_CASE("what is exported can be imported elsewhere, whole") {
  TableOptions options = UniformOptions(3);
  options.slots = {{"a", 3, 1.0f}, {"b", 1, 2.0f}};
  const auto source = MakeTable(options);
  FindOrInsert(*source, Range(-500, 1000));
  FindOrInsert(*source, Range(0, 500));
  Remove(*source, Range(100, 50));
  const RecordBatch records = ExportAll(*source);
  const auto target = MakeTable(options);
  FindOrInsert(*target, {0});  // is overwritten
  const RecordColumns columns = {static_cast<int64_t>(records.keys.size()),
                                 records.keys.data(),
                                 records.rows.data(),
                                 records.slots.data(),
                                 records.frequencies.data(),
                                 records.last_steps.data()};
  EMBEDRA_REQUIRE_OK(target->Import(columns, Serial()));
  CHECK(target->size() == 950);
  CHECK(Find(*target, Range(-500, 1000)).rows ==
        Find(*source, Range(-500, 1000)).rows);
  CHECK(Frequencies(*target) == Frequencies(*source));
}

TEST_CASE("columns that are not given take their initial values") {
  TableOptions options = UniformOptions(1);
  options.slots = {{"a", 1, 1.5f}};
  const auto table = MakeTable(options);
  FindOrInsert(*table, {1});
  const int64_t keys[2] = {1, 2};
  const float rows[2] = {10.0f, 20.0f};
  RecordColumns columns;
  columns.size = 2;
  columns.keys = keys;
  columns.rows = rows;
  EMBEDRA_REQUIRE_OK(table->Import(columns, Serial()));
  const RecordBatch records = ExportAll(*table);
  CHECK(records.slots == std::vector<float>{1.5f, 1.5f});
  CHECK(records.frequencies == std::vector<int64_t>{0, 0});
  CHECK(records.last_steps == std::vector<int64_t>{0, 0});
}

TEST_CASE("exporting in chunks gives every record once") {
  const auto table = MakeTable(2);
  FindOrInsert(*table, Range(0, 1000));
  Remove(*table, Range(300, 400));
  std::vector<int64_t> keys;
  int64_t cursor = 0;
  int chunks = 0;
  while (cursor < table->position_bound()) {
    RecordBatch batch;
    EMBEDRA_REQUIRE_OK(table->Export(&cursor, 70, &batch));
    CHECK(batch.keys.size() <= 70);
    keys.insert(keys.end(), batch.keys.begin(), batch.keys.end());
    ++chunks;
  }
  CHECK(chunks <= 10);
  std::sort(keys.begin(), keys.end());
  std::vector<int64_t> expected = Range(0, 300);
  const std::vector<int64_t> rest = Range(700, 300);
  expected.insert(expected.end(), rest.begin(), rest.end());
  CHECK(keys == expected);
  RecordBatch batch;
  CHECK_FALSE(table->Export(&cursor, 0, &batch).ok());
  cursor = -1;
  CHECK_FALSE(table->Export(&cursor, 1, &batch).ok());
}

}  // namespace
}  // namespace embedra
