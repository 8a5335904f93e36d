// How gradients meet records: repeats, records that are gone, threads, slots.

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "doctest/doctest.h"
#include "embedra/core/gradient_vectors.h"
#include "embedra/core/test_util.h"
#include "embedra/core/thread_pool.h"

namespace embedra {
namespace {

using testing::Find;
using testing::FindOrInsert;
using testing::Lookup;
using testing::MakeTable;
using testing::Range;
using testing::Remove;

RowOptimizer Sgd(float learning_rate) {
  RowOptimizer optimizer;
  optimizer.kind = OptimizerKind::kSgd;
  optimizer.learning_rate = learning_rate;
  return optimizer;
}

// A table of width 1 with rows of zero for keys 0, 1, ...
std::unique_ptr<Table> Zeros() {
  TableOptions options = testing::UniformOptions(1);
  options.initializer = InitializerSpec();
  return MakeTable(options);
}

TEST_CASE("gradients of a repeated row are summed, then clipped once") {
  const auto table = Zeros();
  const int64_t p = FindOrInsert(*table, {1}).positions[0];
  const int64_t positions[3] = {p, p, p};
  const float grads[3] = {1.0f, 1.0f, 1.0f};
  RowOptimizer sgd = Sgd(1.0f);
  SUBCASE("no clipping") {
    EMBEDRA_REQUIRE_OK(
        table->Update(sgd, positions, 3, grads, Serial(), nullptr));
    CHECK(Find(*table, {1}).floats()[0] == -3.0f);
  }
  SUBCASE("by norm") {
    sgd.clipnorm = 1.0f;
    EMBEDRA_REQUIRE_OK(
        table->Update(sgd, positions, 3, grads, Serial(), nullptr));
    CHECK(Find(*table, {1}).floats()[0] == -1.0f);
  }
  SUBCASE("by value") {
    sgd.clipvalue = 2.0f;
    EMBEDRA_REQUIRE_OK(
        table->Update(sgd, positions, 3, grads, Serial(), nullptr));
    CHECK(Find(*table, {1}).floats()[0] == -2.0f);
  }
  CHECK(table->statistics().updates == 1);
}

TEST_CASE("the clipping norm is over all rows of the step") {
  const auto table = Zeros();
  const Lookup lookup = FindOrInsert(*table, {1, 2});
  const float grads[2] = {3.0f, 4.0f};
  RowOptimizer sgd = Sgd(1.0f);
  sgd.clipnorm = 1.0f;
  EMBEDRA_REQUIRE_OK(
      table->Update(sgd, lookup.positions.data(), 2, grads, Serial(), nullptr));
  const std::vector<float> rows = Find(*table, {1, 2}).floats();
  CHECK(rows[0] == doctest::Approx(-0.6));
  CHECK(rows[1] == doctest::Approx(-0.8));
}

TEST_CASE("gradients of records that are gone are dropped and counted") {
  const auto table = Zeros();
  const Lookup lookup = FindOrInsert(*table, {1, 2});
  Remove(*table, {1});
  std::vector<int64_t> positions = lookup.positions;
  positions.push_back(-1);
  positions.push_back(1000000);
  const float grads[4] = {3.0f, 4.0f, 5.0f, 6.0f};
  RowOptimizer sgd = Sgd(1.0f);
  sgd.clipnorm = 2.0f;  // the norm is that of the row which is there
  EMBEDRA_REQUIRE_OK(
      table->Update(sgd, positions.data(), 4, grads, Serial(), nullptr));
  CHECK(Find(*table, {2}).floats()[0] == -2.0f);
  CHECK(Find(*table, {1}).found[0] == false);
  CHECK(table->statistics().stale_gradients == 2);
  CHECK(table->statistics().updates == 1);
}

TEST_CASE("untouched rows do not move") {
  const auto table = MakeTable(4);
  const Lookup all = FindOrInsert(*table, Range(0, 100));
  RowOptimizer adam;
  adam.kind = OptimizerKind::kAdam;
  adam.learning_rate = 0.1f;
  adam.weight_decay = 0.1f;
  const std::vector<float> grads(4, 1.0f);
  for (adam.step = 1; adam.step <= 3; ++adam.step) {
    EMBEDRA_REQUIRE_OK(table->Update(adam, all.positions.data(), 1,
                                     grads.data(), Serial(), nullptr));
  }
  const Lookup after = Find(*table, Range(0, 100));
  CHECK(std::memcmp(after.rows.data() + 16, all.rows.data() + 16,
                    all.rows.size() - 16) == 0);
  CHECK(std::memcmp(after.rows.data(), all.rows.data(), 16) != 0);
}

TEST_CASE("a step gives the same bits on any number of threads") {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  constexpr int64_t kBatch = 30000;
  constexpr int64_t kDim = 8;
  std::vector<int64_t> keys(kBatch);
  for (int64_t& key : keys) {
    key = static_cast<int64_t>(random() % (random() % 10 == 0 ? 5000 : 50));
  }
  std::vector<float> grads(kBatch * kDim);
  for (float& g : grads) g = normal(random);
  RowOptimizer adam;
  adam.kind = OptimizerKind::kAdam;
  adam.learning_rate = 0.1f;
  adam.clipnorm = 1.0f;
  std::vector<char> expected;
  for (const int threads : {1, 2, 3, 7}) {
    ThreadPool pool(threads);
    const auto table = MakeTable(kDim);
    const Lookup lookup = FindOrInsert(*table, keys, pool.parallel());
    for (adam.step = 1; adam.step <= 3; ++adam.step) {
      EMBEDRA_REQUIRE_OK(table->Update(adam, lookup.positions.data(), kBatch,
                                       grads.data(), pool.parallel(), nullptr));
    }
    const std::vector<char> rows = Find(*table, keys).rows;
    if (expected.empty()) expected = rows;
    CHECK(rows == expected);
  }
}

TEST_CASE("an update makes the slots it needs and tells what it dropped") {
  TableOptions options = testing::UniformOptions(2);
  options.slots = {{"velocity", 2, 0.0f}, {"old", 1, 0.0f}};
  const auto table = MakeTable(options);
  const Lookup lookup = FindOrInsert(*table, {1});
  const float ones[2] = {1.0f, 1.0f};
  const std::vector<const float*> slots = {ones};
  EMBEDRA_REQUIRE_OK(table->WriteRecords(lookup.positions.data(), 1,
                                         {"velocity"}, ones, slots, Serial()));
  RowOptimizer adam;
  adam.kind = OptimizerKind::kAdam;
  adam.learning_rate = 0.0f;
  const float grads[2] = {0.0f, 0.0f};
  std::vector<std::string> dropped;
  EMBEDRA_REQUIRE_OK(table->Update(adam, lookup.positions.data(), 1, grads,
                                   Serial(), &dropped));
  CHECK(dropped == std::vector<std::string>{"old"});
  CHECK(table->slots() == SlotsOf(adam, 2));
  // momentum is new; velocity was kept, and decayed by this step.
  const RecordBatch records = testing::ExportAll(*table);
  CHECK(records.slots[0] == 0.0f);
  CHECK(records.slots[2] == doctest::Approx(0.999));
}

TEST_CASE("deduplicating sums in order of first appearance") {
  const auto table = MakeTable(2);
  const Lookup lookup = FindOrInsert(*table, {1, 2, 3});
  Remove(*table, {2});
  const std::vector<int64_t>& p = lookup.positions;
  const std::vector<int64_t> positions = {p[2], p[0], p[1], p[2], -1, p[0]};
  const std::vector<float> grads = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  std::vector<int64_t> unique;
  std::vector<float> sums;
  EMBEDRA_REQUIRE_OK(
      table->Deduplicate(positions.data(), 6, grads.data(),
                         internal::ToVectors(table->dim(), &unique, &sums)));
  CHECK(unique == std::vector<int64_t>{p[2], p[0]});
  CHECK(sums == std::vector<float>{8, 10, 14, 16});
  CHECK(table->statistics().stale_gradients == 1);
  EMBEDRA_REQUIRE_OK(table->Deduplicate(
      nullptr, 0, nullptr, internal::ToVectors(table->dim(), &unique, &sums)));
  CHECK(unique.empty());
  CHECK(sums.empty());
}

TEST_CASE("pending gradients add up over batches and are taken once") {
  const auto table = MakeTable(2);
  const Lookup lookup = FindOrInsert(*table, {1, 2});
  const std::vector<int64_t>& p = lookup.positions;
  const float grads[4] = {1, 2, 3, 4};
  EMBEDRA_REQUIRE_OK(table->AccumulateGradients(p.data(), 2, grads));
  const std::vector<int64_t> again = {p[1], p[1]};
  EMBEDRA_REQUIRE_OK(table->AccumulateGradients(again.data(), 2, grads));
  std::vector<int64_t> positions;
  std::vector<float> sums;
  EMBEDRA_REQUIRE_OK(table->TakeGradients(&positions, &sums));
  CHECK(positions == p);
  CHECK(sums == std::vector<float>{1, 2, 7, 10});
  EMBEDRA_REQUIRE_OK(table->TakeGradients(&positions, &sums));
  CHECK(positions.empty());
}

TEST_CASE("a pending gradient does not pass to another key") {
  const auto table = MakeTable(1);
  const Lookup lookup = FindOrInsert(*table, {1, 2});
  const float grads[2] = {1.0f, 2.0f};
  EMBEDRA_REQUIRE_OK(
      table->AccumulateGradients(lookup.positions.data(), 2, grads));
  Remove(*table, {1, 2});
  for (int i = 0; i < Table::kReuseDelay; ++i) Remove(*table, {});
  const Lookup strangers = FindOrInsert(*table, {3, 4});
  CHECK(strangers.positions[0] < 2);
  const int64_t reused = strangers.positions[0];
  const float later = 5.0f;
  EMBEDRA_REQUIRE_OK(table->AccumulateGradients(&reused, 1, &later));
  std::vector<int64_t> positions;
  std::vector<float> sums;
  EMBEDRA_REQUIRE_OK(table->TakeGradients(&positions, &sums));
  CHECK(positions == std::vector<int64_t>{reused});
  CHECK(sums == std::vector<float>{5.0f});
}

TEST_CASE("many pending gradients agree with deduplicating at once") {
  const auto table = MakeTable(3);
  std::mt19937 random(6);
  std::vector<int64_t> keys(5000);
  for (int64_t& key : keys) key = static_cast<int64_t>(random() % 1500);
  const Lookup lookup = FindOrInsert(*table, keys);
  std::vector<float> grads(keys.size() * 3);
  for (float& g : grads) g = static_cast<float>(random() % 16);  // exact sums
  for (int64_t at = 0; at < 5000; at += 250) {
    EMBEDRA_REQUIRE_OK(table->AccumulateGradients(lookup.positions.data() + at,
                                                  250, grads.data() + at * 3));
  }
  std::vector<int64_t> expected_positions;
  std::vector<float> expected;
  EMBEDRA_REQUIRE_OK(table->Deduplicate(
      lookup.positions.data(), 5000, grads.data(),
      internal::ToVectors(table->dim(), &expected_positions, &expected)));
  std::vector<int64_t> positions;
  std::vector<float> sums;
  EMBEDRA_REQUIRE_OK(table->TakeGradients(&positions, &sums));
  CHECK(positions == expected_positions);
  CHECK(sums == expected);
}

}  // namespace
}  // namespace embedra
