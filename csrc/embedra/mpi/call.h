// CallHeader: what a rank tells the others of a collective before it runs.
//
// Ranks send their headers to each other first. So they notice, all of them and
// before any data are sent, when they are not in the same collective, when what
// they bring does not fit together, or when one cannot take part.

#ifndef EMBEDRA_MPI_CALL_H_
#define EMBEDRA_MPI_CALL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "embedra/core/status.h"

namespace embedra::mpi {

enum class CallKind : int32_t {
  kAllToAllV,
  kAllReduce,
  kAllGatherV,
  kBroadcast,
  kBarrier,
};

// Which labels the ranks of a call may give it.
enum class Labels {
  kSame,
  kAny,  // by which a rank tells of an error, whatever the others are at
};

// Sent as it is. All ranks run the same build.
struct CallHeader {
  CallKind kind = CallKind::kBarrier;
  int32_t failed = 0;   // this rank cannot take part
  uint64_t layout = 0;  // hash of what must be the same on all ranks
  uint64_t label = 0;   // hash of the label; 0 for Labels::kAny
  int64_t rows = 0;     // kAllGatherV: rows; kAllToAllV: bytes sent
  char name[40] = "";   // the label, without its middle if it is long
  char text[56] = "";   // what `layout` is the hash of, as far as it fits
};
static_assert(sizeof(CallHeader) == 128);

// A header of a call by `label`. `layout` says what else must be the same on
// all ranks, e.g. "sum float [3,4]".
CallHeader MakeHeader(CallKind kind, const std::string& label,
                      const std::string& layout, int64_t rows,
                      Labels labels = Labels::kSame);

// By label, e.g. "all_reduce 'gradients'".
std::string NameOf(const CallHeader& header);

// Fails, on all ranks alike, unless the headers of all ranks fit together.
// `problem` is why this rank, if so, cannot take part.
Status CheckHeaders(int64_t sequence, int rank, const std::string& problem,
                    const std::vector<CallHeader>& headers);

}  // namespace embedra::mpi

#endif  // EMBEDRA_MPI_CALL_H_
