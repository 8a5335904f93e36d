// ProgressBoard: which collective a rank is in.

#ifndef EMBEDRA_MPI_PROGRESS_H_
#define EMBEDRA_MPI_PROGRESS_H_

#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "embedra/mpi/call.h"

namespace embedra::mpi {

// Sent as it is.
struct Progress {
  int64_t sequence = 0;  // of the latest collective, from 1
  int32_t running = 0;   // whether the rank is in it
  int32_t ended = 0;     // whether the rank is done with all collectives
  CallHeader header;     // of the latest collective
};

// Written by the thread that runs collectives, read by the watchdog.
class ProgressBoard {
 public:
  // Returns the number of the collective.
  int64_t Begin(const CallHeader& header);
  void Finish();
  void End();

  // `*seconds` is for how long a collective has been running.
  Progress Read(double* seconds) const;

 private:
  using Clock = std::chrono::steady_clock;

  mutable std::mutex mutex_;
  Progress progress_;
  Clock::time_point begun_;
};

// Says which ranks a rank waits for, of what the others answered; those that
// did not answer are absent. Empty if none is late.
std::string DescribeLateRanks(
    const Progress& own, int rank,
    const std::vector<std::optional<Progress>>& answers);

// A rank that ended though `own` waits for it, or -1.
int EndedTooEarly(const Progress& own,
                  const std::vector<std::optional<Progress>>& answers);

}  // namespace embedra::mpi

#endif  // EMBEDRA_MPI_PROGRESS_H_
