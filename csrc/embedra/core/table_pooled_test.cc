// Pooled lookups and their gradients against the same from single rows.

#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <vector>

#include "doctest/doctest.h"
#include "embedra/core/gradient_vectors.h"
#include "embedra/core/row_kernels.h"
#include "embedra/core/test_util.h"
#include "embedra/core/thread_pool.h"

namespace embedra {
namespace {

using testing::Find;
using testing::FindOrInsert;
using testing::Lookup;
using testing::MakeTable;
using testing::UniformOptions;

// A batch of bags of many sizes, empty ones among them.
struct Batch {
  std::vector<int64_t> keys;
  std::vector<float> weights;
  std::vector<int64_t> splits = {0};

  Batch(uint32_t seed, int64_t num_bags, int64_t vocabulary) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> weight(0.1f, 2.0f);
    for (int64_t b = 0; b < num_bags; ++b) {
      const int64_t length = static_cast<int64_t>(random() % 80) - 10;
      for (int64_t i = 0; i < length; ++i) {
        keys.push_back(
            static_cast<int64_t>(random() % static_cast<uint64_t>(vocabulary)));
        weights.push_back(weight(random));
      }
      splits.push_back(static_cast<int64_t>(keys.size()));
    }
  }

  int64_t num_bags() const { return static_cast<int64_t>(splits.size()) - 1; }
  Bags bags(Combiner combiner, bool weighted) const {
    return {keys.data(), weighted ? weights.data() : nullptr, splits.data(),
            num_bags(), combiner};
  }
};

double Divisor(const Batch& batch, Combiner combiner, bool weighted,
               size_t bag) {
  double total = 0.0;
  for (int64_t i = batch.splits[bag]; i < batch.splits[bag + 1]; ++i) {
    const double w =
        weighted ? static_cast<double>(batch.weights[static_cast<size_t>(i)])
                 : 1.0;
    total += combiner == Combiner::kMean ? w : w * w;
  }
  if (combiner == Combiner::kSum) return 1.0;
  return combiner == Combiner::kMean ? total : std::sqrt(total);
}

// In float64 from the single rows, which are float32.
std::vector<double> Expected(const Batch& batch, const std::vector<float>& rows,
                             int64_t dim, Combiner combiner, bool weighted) {
  std::vector<double> pooled(static_cast<size_t>(batch.num_bags() * dim));
  for (size_t b = 0; b + 1 < batch.splits.size(); ++b) {
    const double divisor = Divisor(batch, combiner, weighted, b);
    for (int64_t i = batch.splits[b]; i < batch.splits[b + 1]; ++i) {
      const size_t entry = static_cast<size_t>(i);
      const double w =
          weighted ? static_cast<double>(batch.weights[entry]) : 1.0;
      for (size_t c = 0; c < static_cast<size_t>(dim); ++c) {
        pooled[b * static_cast<size_t>(dim) + c] +=
            w *
            static_cast<double>(rows[entry * static_cast<size_t>(dim) + c]) /
            divisor;
      }
    }
  }
  return pooled;
}

void CheckClose(const std::vector<float>& got,
                const std::vector<double>& expected) {
  REQUIRE(got.size() == expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    REQUIRE(std::abs(static_cast<double>(got[i]) - expected[i]) < 2e-5);
  }
}

std::vector<float> FloatRows(const Table& table, const Lookup& lookup) {
  std::vector<float> rows(lookup.rows.size() / SizeOf(table.row_type()));
  internal::Kernels().to_float[static_cast<size_t>(table.row_type())](
      lookup.rows.data(), static_cast<int64_t>(rows.size()), rows.data());
  return rows;
}

TEST_CASE("pooling is the combination of the single rows") {
  ThreadPool pool(3);
  for (const RowType type :
       {RowType::kFloat32, RowType::kBFloat16, RowType::kFloat16}) {
    for (const int64_t dim : {1, 7, 16, 64, 80}) {
      for (const Combiner combiner :
           {Combiner::kSum, Combiner::kMean, Combiner::kSqrtN}) {
        for (const bool weighted : {false, true}) {
          const Batch batch(static_cast<uint32_t>(dim), 60, 900);
          const auto table = MakeTable(UniformOptions(dim, type));
          const Bags bags = batch.bags(combiner, weighted);
          std::vector<float> pooled(static_cast<size_t>(60 * dim), -1.0f);
          std::vector<int64_t> positions(batch.keys.size());
          // Some keys are there before, most are made on the way.
          FindOrInsert(*table, testing::Range(0, 200));
          EMBEDRA_REQUIRE_OK(table->FindOrInsertPooled(
              bags, pooled.data(), positions.data(), pool.parallel()));
          const Lookup single = Find(*table, batch.keys);
          CHECK(single.positions == positions);
          const std::vector<double> expected = Expected(
              batch, FloatRows(*table, single), dim, combiner, weighted);
          CheckClose(pooled, expected);
          std::vector<float> again(pooled.size());
          EMBEDRA_REQUIRE_OK(
              table->FindOrInsertPooled(bags, again.data(), nullptr, Serial()));
          CHECK(again == pooled);
          EMBEDRA_REQUIRE_OK(table->FindPooled(bags, MissingRow::kInitial,
                                               nullptr, again.data(), nullptr,
                                               pool.parallel()));
          CHECK(again == pooled);
        }
      }
    }
  }
}

TEST_CASE("reading pooled lookups use initial or default rows") {
  const auto table = MakeTable(2);
  const std::vector<float> one = FindOrInsert(*table, {1}).floats();
  const std::vector<float> two = Find(*table, {2}).floats();
  const int64_t keys[2] = {1, 2};
  const int64_t splits[3] = {0, 2, 2};
  const Bags bags = {keys, nullptr, splits, 2, Combiner::kSum};
  float pooled[4];
  int64_t positions[2];
  EMBEDRA_REQUIRE_OK(table->FindPooled(bags, MissingRow::kInitial, nullptr,
                                       pooled, positions, Serial()));
  CHECK(pooled[0] == one[0] + two[0]);
  CHECK(pooled[2] == 0.0f);
  CHECK(positions[1] == Table::kNoPosition);
  const float fallback[2] = {10.0f, 20.0f};
  EMBEDRA_REQUIRE_OK(table->FindPooled(bags, MissingRow::kDefault, fallback,
                                       pooled, nullptr, Serial()));
  CHECK(pooled[1] == one[1] + 20.0f);
  CHECK(table->size() == 1);
  CHECK_FALSE(table
                  ->FindPooled(bags, MissingRow::kDefault, nullptr, pooled,
                               nullptr, Serial())
                  .ok());
}

TEST_CASE("weights that cancel out give zeros, not infinities") {
  const auto table = MakeTable(2);
  const int64_t keys[2] = {1, 2};
  const float weights[2] = {1.0f, -1.0f};
  const int64_t splits[2] = {0, 2};
  const Bags bags = {keys, weights, splits, 1, Combiner::kMean};
  float pooled[2];
  int64_t positions[2];
  EMBEDRA_REQUIRE_OK(
      table->FindOrInsertPooled(bags, pooled, positions, Serial()));
  CHECK(pooled[0] == 0.0f);
  std::vector<int64_t> unique;
  std::vector<float> sums;
  const float grads[2] = {1.0f, 1.0f};
  EMBEDRA_REQUIRE_OK(table->PooledGradient(
      bags, positions, grads, internal::ToVectors(table->dim(), &unique, &sums),
      Serial()));
  CHECK(sums == std::vector<float>(4, 0.0f));
}

TEST_CASE("pooled insertions count each occurrence") {
  const auto table = MakeTable(2);
  const int64_t keys[5] = {1, 1, 2, 1, 3};
  const int64_t splits[4] = {0, 2, 4, 5};
  const Bags bags = {keys, nullptr, splits, 3, Combiner::kSum};
  float pooled[6];
  for (int i = 0; i < 2; ++i) {
    EMBEDRA_REQUIRE_OK(
        table->FindOrInsertPooled(bags, pooled, nullptr, Serial()));
  }
  const RecordBatch records = testing::ExportAll(*table);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(records.frequencies[i] == (records.keys[i] == 1 ? 6 : 2));
  }
  const Statistics s = table->statistics();
  CHECK(s.hits == 5);
  CHECK(s.misses == 5);
  CHECK(s.inserts == 3);
}

TEST_CASE("the pooled gradient is the sum over occurrences, on any threads") {
  constexpr int64_t kDim = 12;
  const Batch batch(4, 100, 300);
  for (const Combiner combiner :
       {Combiner::kSum, Combiner::kMean, Combiner::kSqrtN}) {
    for (const bool weighted : {false, true}) {
      const auto table = MakeTable(kDim);
      const Bags bags = batch.bags(combiner, weighted);
      std::vector<float> pooled(100 * kDim);
      std::vector<int64_t> positions(batch.keys.size());
      EMBEDRA_REQUIRE_OK(table->FindOrInsertPooled(bags, pooled.data(),
                                                   positions.data(), Serial()));
      std::map<int64_t, std::vector<double>> expected;
      std::vector<int64_t> order;
      for (size_t b = 0; b < 100; ++b) {
        const double divisor = Divisor(batch, combiner, weighted, b);
        for (int64_t i = batch.splits[b]; i < batch.splits[b + 1]; ++i) {
          const size_t entry = static_cast<size_t>(i);
          auto& sum = expected[positions[entry]];
          if (sum.empty()) {
            order.push_back(positions[entry]);
            sum.resize(kDim);
          }
          const double w =
              weighted ? static_cast<double>(batch.weights[entry]) : 1.0;
          for (size_t c = 0; c < kDim; ++c) {
            sum[c] += w / divisor * static_cast<double>(pooled[b * kDim + c]);
          }
        }
      }
      std::vector<int64_t> unique;
      std::vector<float> sums;
      EMBEDRA_REQUIRE_OK(table->PooledGradient(
          bags, positions.data(), pooled.data(),
          internal::ToVectors(table->dim(), &unique, &sums), Serial()));
      CHECK(unique == order);
      std::vector<double> flat;
      for (const int64_t p : order) {
        flat.insert(flat.end(), expected[p].begin(), expected[p].end());
      }
      CheckClose(sums, flat);
      ThreadPool pool(4);
      std::vector<float> again;
      EMBEDRA_REQUIRE_OK(table->PooledGradient(
          bags, positions.data(), pooled.data(),
          internal::ToVectors(table->dim(), &unique, &again), pool.parallel()));
      CHECK(unique == order);
      CHECK(again == sums);
    }
  }
}

TEST_CASE("malformed bags are refused") {
  const auto table = MakeTable(2);
  const int64_t keys[3] = {1, 2, 3};
  float pooled[4];
  const auto refused = [&](const int64_t* splits, int64_t num_bags) {
    const Bags bags = {keys, nullptr, splits, num_bags, Combiner::kSum};
    const Status status =
        table->FindOrInsertPooled(bags, pooled, nullptr, Serial());
    return status.code() == StatusCode::kInvalidArgument;
  };
  const int64_t late[2] = {1, 3};
  const int64_t decreasing[3] = {0, 3, 2};
  CHECK(refused(late, 1));
  CHECK(refused(decreasing, 2));
  CHECK(refused(nullptr, 1));
  CHECK(refused(late, -1));
  CHECK(table->size() == 0);
  const int64_t none[1] = {0};
  const Bags empty = {nullptr, nullptr, none, 0, Combiner::kSum};
  EMBEDRA_REQUIRE_OK(
      table->FindOrInsertPooled(empty, nullptr, nullptr, Serial()));
}

}  // namespace
}  // namespace embedra
