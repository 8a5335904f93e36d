// ParallelFor: how the core splits work over threads it does not own.

#ifndef EMBEDRA_CORE_PARALLEL_H_
#define EMBEDRA_CORE_PARALLEL_H_

#include <cstdint>
#include <functional>

namespace embedra {

// Runs `body(begin, end)` over disjoint ranges that cover [0, n), and returns
// when all are done. `cost_ns` is a rough cost of one unit, in nanoseconds, by
// which the implementation chooses how finely to split. `max_threads` tells how
// many bodies may run at once, for work that is split by hand.
//
// A table holds its lock while bodies run. So they must get threads even when
// every caller of the table is waiting for that lock: do not call a table from
// the threads that run the bodies, unless with Serial().
struct ParallelFor {
  using Body = std::function<void(int64_t begin, int64_t end)>;
  std::function<void(int64_t n, int64_t cost_ns, const Body& body)> run;
  int max_threads = 1;

  void operator()(int64_t n, int64_t cost_ns, const Body& body) const {
    if (n <= 0) return;
    if (run) {
      run(n, cost_ns, body);
    } else {
      body(0, n);
    }
  }
};

// Runs everything on the calling thread.
inline ParallelFor Serial() { return ParallelFor{}; }

}  // namespace embedra

#endif  // EMBEDRA_CORE_PARALLEL_H_
