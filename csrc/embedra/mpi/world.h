// World: all ranks of the job, and the thread that talks to them.
//
// Collectives are handed over by any thread and run one after the other, in the
// order in which they were handed over, by one thread that does nothing else.
// Whoever hands them over must see to it that this order is the same on all
// ranks; see embedra/ops/communication_kernel.h.

#ifndef EMBEDRA_MPI_WORLD_H_
#define EMBEDRA_MPI_WORLD_H_

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "embedra/mpi/collectives.h"
#include "embedra/mpi/progress.h"
#include "embedra/mpi/watchdog.h"

namespace embedra::mpi {

struct WorldOptions {
  std::string library;      // path or name of libmpi
  double warn_after_s = 0;  // see Watchdog
  double timeout_s = 0;
};

// A collective, on this rank.
struct Call {
  CallHeader header;
  // Why this rank cannot take part, or empty. It tells the others, and all
  // fail.
  std::string problem;
  // Exchanges data, once all ranks have agreed to. On the communication thread.
  std::function<Status(Collectives& collectives,
                       const std::vector<CallHeader>& headers)>
      exchange;
  // Called at the end, on the communication thread.
  std::function<void(Status status)> done;
};

class World {
 public:
  // Initializes MPI, if nobody else in the process has. Starts the threads. At
  // most once in a process; waits for the other ranks.
  static Status Start(const WorldOptions& options);

  // Null before `Start` and after `End`.
  static World* Get();

  // Waits until all ranks call it. Finalizes MPI, if `Start` initialized it.
  static Status End();

  // Ends all ranks at once, without their doing.
  static void Abort(int code);

  int rank() const { return rank_; }
  int size() const { return size_; }
  int local_rank() const { return local_rank_; }
  int local_size() const { return local_size_; }
  const std::string& version() const { return mpi_.version; }

  void Submit(Call call);

 private:
  explicit World(const WorldOptions& options) : options_(options) {}

  Status Initialize();
  Status FindPlace();
  void Communicate();
  void AwaitSoon() const;
  Status Run(Collectives& collectives, const Call& call);
  Status Finalize();

  const WorldOptions options_;
  OpenMpi mpi_{};
  bool initialized_here_ = false;
  Comm data_comm_ = nullptr;
  Comm watch_comm_ = nullptr;
  int rank_ = 0;
  int size_ = 1;
  int local_rank_ = 0;
  int local_size_ = 1;
  ProgressBoard board_;
  std::unique_ptr<Watchdog> watchdog_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Call> calls_;
  std::atomic<bool> waiting_{false};  // whether there are calls
  bool started_ = false;
  bool ending_ = false;
  Status start_status_;
  Status end_status_;
  std::thread thread_;
};

}  // namespace embedra::mpi

#endif  // EMBEDRA_MPI_WORLD_H_
