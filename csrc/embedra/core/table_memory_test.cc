// What happens when memory runs out, in a process with a limit of its own.

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <vector>

#include "doctest/doctest.h"
#include "embedra/core/table.h"
#include "embedra/core/test_util.h"

// The sanitizers need the address space for themselves.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

namespace embedra {
namespace {

// Lets the process have `bytes` of address space more than now.
bool LimitMemory(size_t bytes) {
  size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit limit;
  limit.rlim_cur = limit.rlim_max =
      pages * static_cast<size_t>(sysconf(_SC_PAGESIZE)) + bytes;
  return pages > 0 && setrlimit(RLIMIT_AS, &limit) == 0;
}

// Returns 0, or the number of the expectation that does not hold.
int FillUntilMemoryIsShort() {
  constexpr int64_t kDim = 1024;
  constexpr int64_t kBatch = 256;
  std::unique_ptr<Table> table;
  if (!Table::Create(testing::UniformOptions(kDim), &table).ok()) return 1;
  std::vector<char> rows(kBatch * kDim * sizeof(float));
  std::vector<char> again(rows.size());
  if (!LimitMemory(size_t{64} << 20)) return 2;
  for (int64_t first = 0;; first += kBatch) {
    if (first > 100000) return 3;  // the limit does not work
    const std::vector<int64_t> keys = testing::Range(first, kBatch);
    const int64_t size = table->size();
    const int64_t bound = table->position_bound();
    const Status status = table->FindOrInsert(keys.data(), kBatch, rows.data(),
                                              nullptr, nullptr, Serial());
    if (status.ok()) continue;
    if (status.code() != StatusCode::kResourceExhausted) return 4;
    if (status.message().find("'items'") == std::string::npos) return 5;
    if (size == 0 || table->size() != size) return 6;
    if (table->position_bound() != bound) return 7;
    break;
  }
  // It goes on working: changing slots needs more and fails whole, removing and
  // reading do not.
  if (table->SetSlots({{"m", kDim, 0.0f}}, nullptr).code() !=
      StatusCode::kResourceExhausted) {
    return 8;
  }
  if (!table->slots().empty()) return 9;
  const std::vector<int64_t> keys = testing::Range(0, kBatch);
  if (!table->Remove(keys.data(), kBatch, nullptr).ok()) return 10;
  for (int i = 0; i < Table::kReuseDelay; ++i) {
    if (!table->Remove(nullptr, 0, nullptr).ok()) return 11;
  }
  for (char* target : {rows.data(), again.data()}) {
    if (!table
             ->FindOrInsert(keys.data(), kBatch, target, nullptr, nullptr,
                            Serial())
             .ok()) {
      return 12;
    }
  }
  return std::memcmp(rows.data(), again.data(), rows.size()) == 0 ? 0 : 13;
}

TEST_CASE("a table that finds no memory says so and stays as it was") {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) _exit(FillUntilMemoryIsShort());
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace embedra

#endif
