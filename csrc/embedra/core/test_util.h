// What the tests of tables share.

#ifndef EMBEDRA_CORE_TEST_UTIL_H_
#define EMBEDRA_CORE_TEST_UTIL_H_

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "doctest/doctest.h"
#include "embedra/core/table.h"

namespace embedra::testing {

#define EMBEDRA_REQUIRE_OK(expression)              \
  do {                                              \
    const ::embedra::Status status_ = (expression); \
    INFO(status_.message());                        \
    REQUIRE(status_.ok());                          \
  } while (false)

inline TableOptions UniformOptions(int64_t dim,
                                   RowType type = RowType::kFloat32) {
  TableOptions options;
  options.name = "items";
  options.dim = dim;
  options.row_type = type;
  options.initializer.kind = InitializerSpec::Kind::kUniform;
  options.initializer.parameters = {-0.05f, 0.05f};
  options.seed = 7;
  return options;
}

inline std::unique_ptr<Table> MakeTable(const TableOptions& options) {
  std::unique_ptr<Table> table;
  EMBEDRA_REQUIRE_OK(Table::Create(options, &table));
  return table;
}

inline std::unique_ptr<Table> MakeTable(int64_t dim) {
  return MakeTable(UniformOptions(dim));
}

// What a lookup gave.
struct Lookup {
  std::vector<char> rows;  // of the row type
  std::vector<int64_t> positions;
  std::vector<bool> found;

  std::vector<float> floats() const {  // float32 tables only
    std::vector<float> values(rows.size() / sizeof(float));
    std::memcpy(values.data(), rows.data(), rows.size());
    return values;
  }
};

inline Lookup MakeLookup(const Table& table, size_t n) {
  Lookup lookup;
  lookup.rows.resize(n * static_cast<size_t>(table.dim()) *
                     SizeOf(table.row_type()));
  lookup.positions.resize(n);
  return lookup;
}

inline Lookup Find(const Table& table, const std::vector<int64_t>& keys,
                   const ParallelFor& parallel = Serial()) {
  Lookup lookup = MakeLookup(table, keys.size());
  const std::unique_ptr<bool[]> found(new bool[keys.size() + 1]);
  EMBEDRA_REQUIRE_OK(table.Find(keys.data(), static_cast<int64_t>(keys.size()),
                                MissingRow::kInitial, nullptr,
                                lookup.rows.data(), lookup.positions.data(),
                                found.get(), parallel));
  lookup.found.assign(found.get(), found.get() + keys.size());
  return lookup;
}

inline Lookup FindOrInsert(Table& table, const std::vector<int64_t>& keys,
                           const ParallelFor& parallel = Serial()) {
  Lookup lookup = MakeLookup(table, keys.size());
  const std::unique_ptr<bool[]> found(new bool[keys.size() + 1]);
  EMBEDRA_REQUIRE_OK(table.FindOrInsert(
      keys.data(), static_cast<int64_t>(keys.size()), lookup.rows.data(),
      lookup.positions.data(), found.get(), parallel));
  lookup.found.assign(found.get(), found.get() + keys.size());
  return lookup;
}

inline int64_t Remove(Table& table, const std::vector<int64_t>& keys) {
  int64_t removed = -1;
  EMBEDRA_REQUIRE_OK(
      table.Remove(keys.data(), static_cast<int64_t>(keys.size()), &removed));
  return removed;
}

// All records, in order of position.
inline RecordBatch ExportAll(const Table& table) {
  RecordBatch batch;
  int64_t cursor = 0;
  EMBEDRA_REQUIRE_OK(table.Export(&cursor, table.size() + 1, &batch));
  CHECK(cursor == table.position_bound());
  return batch;
}

// The frequency of each key.
inline std::map<int64_t, int64_t> Frequencies(const Table& table) {
  const RecordBatch records = ExportAll(table);
  std::map<int64_t, int64_t> frequencies;
  for (size_t i = 0; i < records.keys.size(); ++i) {
    frequencies[records.keys[i]] = records.frequencies[i];
  }
  return frequencies;
}

// `count` keys from `first` on.
inline std::vector<int64_t> Range(int64_t first, int64_t count) {
  std::vector<int64_t> keys(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) keys[static_cast<size_t>(i)] = first + i;
  return keys;
}

}  // namespace embedra::testing

#endif  // EMBEDRA_CORE_TEST_UTIL_H_
