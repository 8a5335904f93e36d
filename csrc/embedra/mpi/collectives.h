// Collectives: the exchanges themselves, over one communicator.
//
// Called by one thread at a time, by all ranks in the same order. Counts may be
// larger than what an `int` holds, which MPI's own counts are.

#ifndef EMBEDRA_MPI_COLLECTIVES_H_
#define EMBEDRA_MPI_COLLECTIVES_H_

#include <cstdint>
#include <vector>

#include "embedra/core/status.h"
#include "embedra/mpi/call.h"
#include "embedra/mpi/open_mpi.h"

namespace embedra::mpi {

enum class Reduction { kSum, kMax, kMin };
enum class Number { kFloat32, kFloat64, kInt32, kInt64 };

class Collectives {
 public:
  Collectives(const OpenMpi& mpi, Comm comm, int rank, int size)
      : mpi_(mpi), comm_(comm), rank_(rank), size_(size) {}

  int rank() const { return rank_; }
  int size() const { return size_; }

  // Gives every rank the header of every rank.
  Status ExchangeHeaders(const CallHeader& own,
                         std::vector<CallHeader>* headers);

  // `sent` holds `n` numbers for each rank, `received` gets as many from each.
  Status AllToAll(const int64_t* sent, int64_t* received, int n);

  // `sent` holds `sent_rows[r]` rows of `row_bytes` for rank r, one rank after
  // the other; `received` gets `received_rows[r]` rows of rank r, likewise.
  Status AllToAllV(const void* sent, const std::vector<int64_t>& sent_rows,
                   void* received, const std::vector<int64_t>& received_rows,
                   int64_t row_bytes);

  // `received` gets `rows[r]` rows of rank r, one rank after the other.
  Status AllGatherV(const void* sent, void* received,
                    const std::vector<int64_t>& rows, int64_t row_bytes);

  // `sent` may be null: `received` then holds what is sent.
  Status AllReduce(const void* sent, void* received, int64_t count,
                   Number number, Reduction reduction);

  Status Broadcast(void* data, int64_t bytes, int root);

 private:
  const OpenMpi& mpi_;
  const Comm comm_;
  const int rank_;
  const int size_;
};

}  // namespace embedra::mpi

#endif  // EMBEDRA_MPI_COLLECTIVES_H_
