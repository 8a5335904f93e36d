// Speed and memory of the core, without TensorFlow.
//
//   embedra_core_benchmark [records] [threads] [repeats]
//
// Prints a table, then one JSON line for each row of it. The yardstick is
// "gather": the same rows copied from a dense array at known offsets, on one
// thread, which is what numpy.take does.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "embedra/core/gradient_vectors.h"
#include "embedra/core/hash.h"
#include "embedra/core/row_kernels.h"
#include "embedra/core/table.h"
#include "embedra/core/thread_pool.h"

namespace embedra {
namespace {

constexpr int64_t kBatch = 65536;
constexpr int64_t kDim = 16;

struct Result {
  std::string name;
  double millions_per_second;
  std::string unit;
};

std::vector<Result> results;

void Check(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.message().c_str());
  std::exit(1);
}

// Resident memory of the process, in bytes.
int64_t ResidentBytes() {
  long pages = 0;
  long resident = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%ld %ld", &pages, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return resident * 4096;
}

// Median over `repeats` of the rate of `run`, which handles `items`.
void Measure(const std::string& name, const std::string& unit, int64_t items,
             int repeats, const std::function<void(int)>& run) {
  std::vector<double> rates;
  for (int r = 0; r < repeats; ++r) {
    const auto start = std::chrono::steady_clock::now();
    run(r);
    const std::chrono::duration<double> time =
        std::chrono::steady_clock::now() - start;
    rates.push_back(static_cast<double>(items) / time.count() / 1e6);
  }
  std::nth_element(rates.begin(), rates.begin() + repeats / 2, rates.end());
  results.push_back({name, rates[static_cast<size_t>(repeats / 2)], unit});
}

int64_t KeyAt(int64_t i) {  // spread over all 64 bits
  return static_cast<int64_t>(internal::Mix64(static_cast<uint64_t>(i)));
}

std::unique_ptr<Table> MakeTable(const std::string& name, int64_t dim) {
  TableOptions options;
  options.name = name;
  options.dim = dim;
  options.initializer.kind = InitializerSpec::Kind::kUniform;
  options.initializer.parameters = {-0.05f, 0.05f};
  std::unique_ptr<Table> table;
  Check(Table::Create(options, &table));
  return table;
}

// Batches of random indices below `records`.
std::vector<std::vector<int64_t>> RandomBatches(int64_t records, int count) {
  std::mt19937_64 random(1);
  std::uniform_int_distribution<int64_t> index(0, records - 1);
  std::vector<std::vector<int64_t>> batches(static_cast<size_t>(count));
  for (auto& batch : batches) {
    batch.resize(kBatch);
    for (int64_t& i : batch) i = index(random);
  }
  return batches;
}

void BenchmarkGather(int64_t records,
                     const std::vector<std::vector<int64_t>>& batches) {
  std::vector<float> dense(static_cast<size_t>(records * kDim), 1.0f);
  std::vector<float> rows(kBatch * kDim);
  Measure("gather, dense, 1 thread", "M rows/s", kBatch,
          static_cast<int>(batches.size()), [&](int r) {
            const int64_t* batch = batches[static_cast<size_t>(r)].data();
            for (int64_t i = 0; i < kBatch; ++i) {
              std::memcpy(rows.data() + i * kDim,
                          dense.data() + batch[i] * kDim, kDim * sizeof(float));
            }
          });
}

// Fills a table that has Adam's slots.
std::unique_ptr<Table> BenchmarkInserts(const std::string& suffix,
                                        int64_t records,
                                        const ParallelFor& parallel) {
  auto table = MakeTable("records", kDim);
  RowOptimizer adam;
  adam.kind = OptimizerKind::kAdam;
  Check(table->SetSlots(SlotsOf(adam, kDim), nullptr));
  std::vector<float> rows(kBatch * kDim);
  std::vector<int64_t> positions(kBatch);
  std::vector<int64_t> keys(kBatch);
  const int inserts = static_cast<int>((records + kBatch - 1) / kBatch);
  const double count = static_cast<double>(inserts * kBatch);
  const int64_t before = ResidentBytes();
  double slowest = 0.0;
  double total = 0.0;
  Measure("insert new keys, median batch" + suffix, "M keys/s", kBatch, inserts,
          [&](int r) {
            for (int64_t i = 0; i < kBatch; ++i) {
              keys[static_cast<size_t>(i)] = KeyAt(r * kBatch + i);
            }
            const auto begin = std::chrono::steady_clock::now();
            Check(table->FindOrInsert(keys.data(), kBatch, rows.data(),
                                      positions.data(), nullptr, parallel));
            const std::chrono::duration<double> time =
                std::chrono::steady_clock::now() - begin;
            slowest = std::max(slowest, time.count());
            total += time.count();
          });
  results.push_back(
      {"insert new keys, overall" + suffix, count / total / 1e6, "M keys/s"});
  results.push_back(
      {"insert new keys, slowest batch" + suffix, slowest * 1e3, "ms"});
  results.push_back({"memory, resident" + suffix,
                     static_cast<double>(ResidentBytes() - before) / count,
                     "bytes/key"});
  results.push_back({"memory, counted" + suffix,
                     static_cast<double>(table->statistics().bytes) / count,
                     "bytes/key"});
  return table;
}

void BenchmarkRecords(int64_t records, const ParallelFor& parallel,
                      std::vector<std::vector<int64_t>> batches) {
  const int repeats = static_cast<int>(batches.size());
  // Where the kernel, or the host of a virtual machine, is slow to hand out
  // memory for the first time, the second table shows what the core does.
  BenchmarkInserts("", records, parallel).reset();
  const auto table = BenchmarkInserts(", again", records, parallel);
  RowOptimizer adam;
  adam.kind = OptimizerKind::kAdam;
  adam.learning_rate = 1e-3f;
  std::vector<float> rows(kBatch * kDim);
  std::vector<int64_t> positions(kBatch);
  for (auto& batch : batches) {
    for (int64_t& i : batch) i = KeyAt(i);
  }
  const auto batch = [&](int r) {
    return batches[static_cast<size_t>(r)].data();
  };
  for (const bool threads : {false, true}) {
    const ParallelFor how = threads ? parallel : Serial();
    const std::string suffix =
        ", " + std::to_string(how.max_threads) + " thread(s)";
    Measure("find" + suffix, "M rows/s", kBatch, repeats, [&](int r) {
      Check(table->Find(batch(r), kBatch, MissingRow::kInitial, nullptr,
                        rows.data(), nullptr, nullptr, how));
    });
    Measure("find or insert, present" + suffix, "M rows/s", kBatch, repeats,
            [&](int r) {
              Check(table->FindOrInsert(batch(r), kBatch, rows.data(),
                                        positions.data(), nullptr, how));
            });
    std::vector<float> grads(kBatch * kDim, 0.01f);
    std::vector<std::vector<int64_t>> places(batches.size());
    for (int r = 0; r < repeats; ++r) {
      Check(table->FindOrInsert(batch(r), kBatch, rows.data(), positions.data(),
                                nullptr, how));
      places[static_cast<size_t>(r)] = positions;
    }
    Measure("adam" + suffix, "M rows/s", kBatch, repeats, [&](int r) {
      adam.step = r + 1;
      Check(table->Update(adam, places[static_cast<size_t>(r)].data(), kBatch,
                          grads.data(), how, nullptr));
    });
  }
}

void BenchmarkPooled(int64_t records, const ParallelFor& parallel) {
  constexpr int64_t kBags = 4096;
  constexpr int64_t kWidth = 64;
  constexpr int kRepeats = 15;
  const int64_t vocabulary = std::min<int64_t>(records, 1000000);
  const auto table = MakeTable("pooled", kWidth);
  std::mt19937_64 random(2);
  std::uniform_int_distribution<int64_t> length(1, 99);
  std::uniform_int_distribution<int64_t> index(0, vocabulary - 1);
  std::vector<int64_t> splits = {0};
  std::vector<int64_t> keys;
  for (int64_t b = 0; b < kBags; ++b) {
    for (int64_t i = length(random); i > 0; --i) {
      keys.push_back(KeyAt(index(random)));
    }
    splits.push_back(static_cast<int64_t>(keys.size()));
  }
  {
    std::vector<int64_t> all;
    for (int64_t i = 0; i < vocabulary; ++i) all.push_back(KeyAt(i));
    std::vector<float> rows(all.size() * kWidth);
    Check(table->FindOrInsert(all.data(), vocabulary, rows.data(), nullptr,
                              nullptr, parallel));
  }
  const int64_t n = static_cast<int64_t>(keys.size());
  std::vector<float> pooled(kBags * kWidth);
  std::vector<int64_t> positions(keys.size());
  const Bags bags = {keys.data(), nullptr, splits.data(), kBags,
                     Combiner::kSum};
  Measure("pooled lookup, width 64", "M ids/s", n, kRepeats, [&](int) {
    Check(table->FindOrInsertPooled(bags, pooled.data(), positions.data(),
                                    parallel));
  });
  results.push_back({"pooled lookup, row bytes read",
                     results.back().millions_per_second * kWidth * 4 / 1e3,
                     "GB/s"});
  std::vector<int64_t> unique;
  std::vector<float> sums;
  Measure("pooled gradient, width 64", "M ids/s", n, kRepeats, [&](int) {
    Check(table->PooledGradient(
        bags, positions.data(), pooled.data(),
        internal::ToVectors(table->dim(), &unique, &sums), parallel));
  });
}

void Print(int64_t records, int threads) {
  std::printf("records %lld, dim %lld, batch %lld, threads %d, kernels %s\n",
              static_cast<long long>(records), static_cast<long long>(kDim),
              static_cast<long long>(kBatch), threads, KernelSet());
  for (const Result& result : results) {
    std::printf("  %-42s %10.2f %s\n", result.name.c_str(),
                result.millions_per_second, result.unit.c_str());
  }
  for (const Result& result : results) {
    std::printf("{\"name\": \"%s\", \"value\": %.4f, \"unit\": \"%s\"}\n",
                result.name.c_str(), result.millions_per_second,
                result.unit.c_str());
  }
}

}  // namespace
}  // namespace embedra

int main(int argc, char** argv) {
  const int64_t records = argc > 1 ? std::atoll(argv[1]) : 5000000;
  const int threads = argc > 2 ? std::atoi(argv[2]) : 2;
  const int repeats = argc > 3 ? std::atoi(argv[3]) : 31;
  if (records < 1 || threads < 1 || repeats < 1) {
    std::fprintf(stderr,
                 "usage: embedra_core_benchmark [records] [threads] "
                 "[repeats]\n");
    return 2;
  }
  embedra::ThreadPool pool(threads, /*min_cost_ns=*/20000);
  const auto batches = embedra::RandomBatches(records, repeats);
  embedra::BenchmarkGather(records, batches);
  embedra::BenchmarkRecords(records, pool.parallel(), batches);
  embedra::BenchmarkPooled(records, pool.parallel());
  embedra::Print(records, threads);
  return 0;
}
