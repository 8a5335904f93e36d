// Random sequences of operations against a plain map that does the same, slowly
// and obviously.

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "doctest/doctest.h"
#include "embedra/core/row_kernels.h"
#include "embedra/core/test_util.h"
#include "embedra/core/thread_pool.h"

namespace embedra {
namespace {

using testing::Lookup;

constexpr int64_t kDim = 5;

struct ModelRecord {
  std::vector<float> row;  // values that the row type holds exactly
  std::vector<float> velocity;
  int64_t frequency = 0;
  int64_t last_step = 0;
};

// The table under test beside its model; every operation is done to both.
class Pair {
 public:
  Pair(RowType type, uint32_t seed, const ParallelFor& parallel)
      : random_(seed), parallel_(parallel) {
    TableOptions options = testing::UniformOptions(kDim, type);
    options.slots = {{"momentum", kDim, 0.0f}};
    table_ = testing::MakeTable(options);
  }

  void Step() {
    switch (random_() % 10) {
      case 0:
      case 1:
      case 2:
        return Insert();
      case 3:
        return Read();
      case 4:
        return Assign();
      case 5:
        return Accumulate();
      case 6:
        return Remove();
      case 7:
        return Update();
      case 8:
        return Import();
      default:
        if (random_() % 40 == 0) return Clear();
        EMBEDRA_REQUIRE_OK(
            table_->Reserve(static_cast<int64_t>(random_() % 4000)));
    }
  }

  // Compares everything.
  void Check() {
    REQUIRE(table_->size() == static_cast<int64_t>(model_.size()));
    const RecordBatch records = testing::ExportAll(*table_);
    REQUIRE(records.keys.size() == model_.size());
    const std::vector<float> rows = Floats(records.rows);
    for (size_t i = 0; i < records.keys.size(); ++i) {
      const auto it = model_.find(records.keys[i]);
      REQUIRE(it != model_.end());
      const ModelRecord& r = it->second;
      REQUIRE(std::equal(r.row.begin(), r.row.end(), rows.data() + i * kDim));
      REQUIRE(std::equal(r.velocity.begin(), r.velocity.end(),
                         records.slots.data() + i * kDim));
      REQUIRE(records.frequencies[i] == r.frequency);
      REQUIRE(records.last_steps[i] == r.last_step);
    }
  }

 private:
  size_t type() const { return static_cast<size_t>(table_->row_type()); }
  size_t row_bytes() const {
    return static_cast<size_t>(kDim) * SizeOf(table_->row_type());
  }

  std::vector<int64_t> RandomKeys() {
    std::vector<int64_t> keys(random_() % 300);
    for (int64_t& key : keys) {
      key = static_cast<int64_t>(random_() % 2000) - 1000;
      if (random_() % 100 == 0) key *= int64_t{1} << 53;
    }
    return keys;
  }

  std::vector<float> RandomFloats(size_t rows) {
    std::uniform_real_distribution<float> value(-1.0f, 1.0f);
    std::vector<float> values(rows * kDim);
    for (float& v : values) v = value(random_);
    return values;
  }

  std::vector<float> Floats(const std::vector<char>& rows) const {
    std::vector<float> values(rows.size() / SizeOf(table_->row_type()));
    internal::Kernels().to_float[type()](
        rows.data(), static_cast<int64_t>(values.size()), values.data());
    return values;
  }

  std::vector<char> Bytes(const std::vector<float>& values) const {
    std::vector<char> rows(values.size() * SizeOf(table_->row_type()));
    internal::Kernels().from_float[type()](
        values.data(), static_cast<int64_t>(values.size()), rows.data());
    return rows;
  }

  // Rounds to the row type.
  std::vector<float> Round(const std::vector<float>& values) const {
    return Floats(Bytes(values));
  }

  ModelRecord Initial(int64_t key) const {
    const TableOptions& o = table_->options();
    std::vector<float> row(kDim);
    RowInitializer(o.initializer, o.seed, o.name, o.dim).Fill(key, row.data());
    return {Round(row), std::vector<float>(kDim, 0.0f), 0, step_};
  }

  ModelRecord& Get(int64_t key) {
    auto it = model_.find(key);
    if (it == model_.end()) it = model_.emplace(key, Initial(key)).first;
    return it->second;
  }

  void Insert() {
    table_->set_step(++step_);
    const std::vector<int64_t> keys = RandomKeys();
    const Lookup lookup = testing::FindOrInsert(*table_, keys, parallel_);
    for (size_t i = 0; i < keys.size(); ++i) {
      // Of a repeated new key, every occurrence was absent at the beginning.
      const bool is_new =
          model_.find(keys[i]) == model_.end() || fresh_.count(keys[i]) > 0;
      if (is_new) fresh_[keys[i]] = true;
      REQUIRE(lookup.found[i] == !is_new);
      ModelRecord& record = Get(keys[i]);
      ++record.frequency;
      record.last_step = step_;
    }
    fresh_.clear();
    CheckRows(keys, lookup);
    positions_ = lookup.positions;
    position_keys_ = keys;
    updatable_ = std::set<int64_t>(keys.begin(), keys.end());
  }

  void Read() {
    const std::vector<int64_t> keys = RandomKeys();
    CheckRows(keys, testing::Find(*table_, keys, parallel_));
  }

  void CheckRows(const std::vector<int64_t>& keys, const Lookup& lookup) {
    const std::vector<float> rows = Floats(lookup.rows);
    for (size_t i = 0; i < keys.size(); ++i) {
      const auto it = model_.find(keys[i]);
      const std::vector<float> expected =
          it == model_.end() ? Initial(keys[i]).row : it->second.row;
      REQUIRE(
          std::equal(expected.begin(), expected.end(), rows.data() + i * kDim));
      if (it == model_.end()) {
        REQUIRE(lookup.positions[i] == Table::kNoPosition);
      }
    }
  }

  void Assign() {
    const std::vector<int64_t> keys = RandomKeys();
    const std::vector<float> rows = Round(RandomFloats(keys.size()));
    const bool only_missing = random_() % 2 == 0;
    EMBEDRA_REQUIRE_OK(
        table_->Assign(keys.data(), static_cast<int64_t>(keys.size()),
                       Bytes(rows).data(), only_missing, parallel_));
    for (size_t i = 0; i < keys.size(); ++i) {
      if (only_missing && model_.count(keys[i]) > 0) continue;
      Get(keys[i]).row.assign(rows.data() + i * kDim,
                              rows.data() + (i + 1) * kDim);
    }
  }

  void Accumulate() {
    const std::vector<int64_t> keys = RandomKeys();
    const std::vector<float> deltas = RandomFloats(keys.size());
    // Halves are rounded after all deltas of a key, not after each.
    std::map<int64_t, std::vector<float>> sums;
    for (size_t i = 0; i < keys.size(); ++i) {
      auto& sum = sums[keys[i]];
      if (sum.empty()) {
        const auto it = model_.find(keys[i]);
        sum = Get(keys[i]).row;
        if (it == model_.end()) sum = InitialFloats(keys[i]);
      }
      for (size_t c = 0; c < kDim; ++c) sum[c] += deltas[i * kDim + c];
    }
    for (const auto& [key, sum] : sums) Get(key).row = Round(sum);
    EMBEDRA_REQUIRE_OK(table_->Accumulate(keys.data(),
                                          static_cast<int64_t>(keys.size()),
                                          deltas.data(), parallel_));
  }

  std::vector<float> InitialFloats(int64_t key) const {
    const TableOptions& o = table_->options();
    std::vector<float> row(kDim);
    RowInitializer(o.initializer, o.seed, o.name, o.dim).Fill(key, row.data());
    return row;
  }

  void Remove() {
    const std::vector<int64_t> keys = RandomKeys();
    int64_t expected = 0;
    for (const int64_t key : keys) {
      expected += static_cast<int64_t>(model_.erase(key));
      updatable_.erase(key);  // should it come back, it is at another position
    }
    REQUIRE(testing::Remove(*table_, keys) == expected);
  }

  // Momentum on the positions of the last insertion, some of which may be gone.
  void Update() {
    RowOptimizer optimizer;
    optimizer.kind = OptimizerKind::kMomentum;
    optimizer.learning_rate = 0.1f;
    optimizer.momentum = 0.5f;
    const std::vector<float> grads = RandomFloats(positions_.size());
    EMBEDRA_REQUIRE_OK(table_->Update(optimizer, positions_.data(),
                                      static_cast<int64_t>(positions_.size()),
                                      grads.data(), parallel_, nullptr));
    std::map<int64_t, std::vector<float>> sums;
    for (size_t i = 0; i < positions_.size(); ++i) {
      auto& sum = sums[position_keys_[i]];
      sum.resize(kDim, 0.0f);
      for (size_t c = 0; c < kDim; ++c) sum[c] += grads[i * kDim + c];
    }
    for (const auto& [key, sum] : sums) {
      if (updatable_.count(key) == 0) continue;
      ModelRecord& r = model_.at(key);
      for (size_t c = 0; c < kDim; ++c) {
        r.velocity[c] = r.velocity[c] * 0.5f - sum[c] * 0.1f;
        r.row[c] += r.velocity[c];
      }
      r.row = Round(r.row);
    }
  }

  void Import() {
    const std::vector<int64_t> keys = RandomKeys();
    const std::vector<float> rows = Round(RandomFloats(keys.size()));
    const std::vector<char> bytes = Bytes(rows);
    const std::vector<float> slots = RandomFloats(keys.size());
    std::vector<int64_t> frequencies(keys.size());
    std::vector<int64_t> steps(keys.size());
    for (size_t i = 0; i < keys.size(); ++i) {
      frequencies[i] = random_() % 100;
      steps[i] = random_() % 100;
      Get(keys[i]) = {{rows.data() + i * kDim, rows.data() + (i + 1) * kDim},
                      {slots.data() + i * kDim, slots.data() + (i + 1) * kDim},
                      frequencies[i],
                      steps[i]};
    }
    const RecordColumns columns = {static_cast<int64_t>(keys.size()),
                                   keys.data(),
                                   bytes.data(),
                                   slots.data(),
                                   frequencies.data(),
                                   steps.data()};
    EMBEDRA_REQUIRE_OK(table_->Import(columns, parallel_));
  }

  void Clear() {
    EMBEDRA_REQUIRE_OK(table_->Clear());
    model_.clear();
    updatable_.clear();
  }

  std::mt19937 random_;
  const ParallelFor parallel_;
  std::unique_ptr<Table> table_;
  std::map<int64_t, ModelRecord> model_;
  std::map<int64_t, bool> fresh_;
  int64_t step_ = 0;
  // Of the last insertion; and those of its keys that were not removed since.
  std::vector<int64_t> positions_;
  std::vector<int64_t> position_keys_;
  std::set<int64_t> updatable_;
};

void Run(RowType type, uint32_t seed, const ParallelFor& parallel) {
  Pair pair(type, seed, parallel);
  for (int i = 0; i < 250; ++i) {
    pair.Step();
    if (i % 10 == 9) pair.Check();
  }
  pair.Check();
}

TEST_CASE("random operations agree with a map") {
  ThreadPool pool(3);
  for (const RowType type :
       {RowType::kFloat32, RowType::kBFloat16, RowType::kFloat16}) {
    for (uint32_t seed = 0; seed < 12; ++seed) {
      CAPTURE(static_cast<int>(type));
      CAPTURE(seed);
      Run(type, seed, seed % 2 == 0 ? Serial() : pool.parallel());
    }
  }
}

}  // namespace
}  // namespace embedra
