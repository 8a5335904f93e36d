// How kernels spread work: inside one table, and over the tables of a list.

#ifndef EMBEDRA_OPS_TABLE_PARALLEL_H_
#define EMBEDRA_OPS_TABLE_PARALLEL_H_

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "embedra/core/parallel.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace embedra {

// Splits work over the device's intra-op threads. Little work stays on the
// calling thread: ops on other tables run beside this one already.
ParallelFor DeviceParallelFor(tensorflow::OpKernelContext* ctx);

// Rough cost of touching `rows` records of `dim` elements, in nanoseconds.
inline int64_t RowsCostNs(int64_t rows, int64_t dim) {
  constexpr int64_t kMissNs = 40;  // cache misses on the way to a record
  constexpr int64_t kElementsPerNs = 2;
  return rows * (kMissNs + dim / kElementsPerNs);
}

// Calls `body(i)` for every i in [0, n), some of them at the same time if
// `cost_ns`, the cost of all together, makes up for it. Returns the first error
// in the order of i.
//
// The calling thread takes part, and helpers are closures of the *inter-op*
// pool that take tables as long as there are any. Intra-op threads would not
// do: `body` waits for a table's lock, and the lock's owner may itself wait for
// intra-op threads.
absl::Status ForEachTable(tensorflow::OpKernelContext* ctx, int n,
                          int64_t cost_ns,
                          const std::function<absl::Status(int)>& body);

}  // namespace embedra

#endif  // EMBEDRA_OPS_TABLE_PARALLEL_H_
