#include "embedra/mpi/collectives.h"

#include <algorithm>
#include <vector>

#include "doctest/doctest.h"

namespace embedra::mpi {
namespace {

// Stands for types of an MPI library: none is looked into.
Datatype TypeAt(uintptr_t address) {
  return reinterpret_cast<Datatype>(address);
}
const Datatype kByte = TypeAt(16);
const Datatype kRow = TypeAt(32);
const Datatype kFloat32 = TypeAt(48);

// What an exchange asked MPI for.
struct Asked {
  std::vector<int> sent_counts, sent_begins, counts, begins;
  Datatype type = nullptr;
  int row_bytes = 0;
  int types_alive = 0;
  std::vector<int> reduced;
  std::vector<int64_t> offsets;
};
Asked asked;
char* const kBuffer = reinterpret_cast<char*>(4096);

constexpr int kRanks = 2;

// An MPI that notes what it is asked for, and moves nothing.
OpenMpi NotingMpi() {
  asked = Asked();
  OpenMpi mpi{};
  mpi.byte = kByte;
  mpi.float32 = kFloat32;
  mpi.Type_contiguous = [](int count, Datatype, Datatype* type) {
    asked.row_bytes = count;
    ++asked.types_alive;
    *type = kRow;
    return 0;
  };
  mpi.Type_commit = [](Datatype*) { return 0; };
  mpi.Type_free = [](Datatype*) {
    --asked.types_alive;
    return 0;
  };
  mpi.Alltoallv = [](const void*, const int* sent_counts,
                     const int* sent_begins, Datatype type, void*,
                     const int* counts, const int* begins, Datatype, Comm) {
    asked.sent_counts.assign(sent_counts, sent_counts + kRanks);
    asked.sent_begins.assign(sent_begins, sent_begins + kRanks);
    asked.counts.assign(counts, counts + kRanks);
    asked.begins.assign(begins, begins + kRanks);
    asked.type = type;
    return 0;
  };
  mpi.Allreduce = [](const void*, void* received, int count, Datatype, ReduceOp,
                     Comm) {
    asked.reduced.push_back(count);
    asked.offsets.push_back(static_cast<char*>(received) - kBuffer);
    return 0;
  };
  return mpi;
}

TEST_CASE("Rows go as bytes, each rank's after those of the rank before") {
  const OpenMpi mpi = NotingMpi();
  Collectives collectives(mpi, nullptr, 0, kRanks);
  REQUIRE(collectives.AllToAllV(nullptr, {3, 2}, nullptr, {0, 7}, 12).ok());
  CHECK(asked.sent_counts == std::vector<int>{36, 24});
  CHECK(asked.sent_begins == std::vector<int>{0, 36});
  CHECK(asked.counts == std::vector<int>{0, 84});
  CHECK(asked.begins == std::vector<int>{0, 0});
  CHECK(asked.type == kByte);
}

TEST_CASE("Exchanges of more bytes than MPI counts go as rows") {
  const OpenMpi mpi = NotingMpi();
  Collectives collectives(mpi, nullptr, 0, kRanks);
  const int64_t many = 1'500'000'000;
  REQUIRE(collectives.AllToAllV(nullptr, {1, 1}, nullptr, {many, 1}, 64).ok());
  CHECK(asked.row_bytes == 64);
  CHECK(asked.type == kRow);
  CHECK(asked.sent_counts == std::vector<int>{1, 1});
  CHECK(asked.counts == std::vector<int>{static_cast<int>(many), 1});
  CHECK(asked.begins == std::vector<int>{0, static_cast<int>(many)});
  CHECK(asked.types_alive == 0);
}

TEST_CASE("More rows than MPI counts are an error that tells the limit") {
  const OpenMpi mpi = NotingMpi();
  Collectives collectives(mpi, nullptr, 0, kRanks);
  const int64_t half = 1'500'000'000;
  const Status status =
      collectives.AllToAllV(nullptr, {half, half}, nullptr, {0, 0}, 4);
  CHECK(status.message().find("3000000000 rows of 4 bytes") !=
        std::string::npos);
  CHECK(asked.counts.empty());
  CHECK(asked.types_alive == 0);
}

TEST_CASE("Rows without elements are exchanged, as nothing") {
  const OpenMpi mpi = NotingMpi();
  Collectives collectives(mpi, nullptr, 0, kRanks);
  REQUIRE(collectives.AllToAllV(nullptr, {3, 2}, nullptr, {4, 1}, 0).ok());
  CHECK(asked.counts == std::vector<int>{0, 0});
}

TEST_CASE("Long reductions are cut into pieces that follow each other") {
  const OpenMpi mpi = NotingMpi();
  Collectives collectives(mpi, nullptr, 0, kRanks);
  const int64_t piece = int64_t{1} << 30;
  REQUIRE(collectives
              .AllReduce(nullptr, kBuffer, 2 * piece + 5, Number::kFloat32,
                         Reduction::kSum)
              .ok());
  CHECK(asked.reduced == std::vector<int>{1 << 30, 1 << 30, 5});
  CHECK(asked.offsets == std::vector<int64_t>{0, 4 * piece, 8 * piece});
}

}  // namespace
}  // namespace embedra::mpi
