// Watchdog: a thread that tells which rank is late in which collective.
//
// A rank that waits in a collective asks the others how far they are; each
// rank's watchdog answers, also while its own collective runs. So the rank that
// is missing can be named, and a rank that has ended, for which the others
// would wait for ever, ends the job.

#ifndef EMBEDRA_MPI_WATCHDOG_H_
#define EMBEDRA_MPI_WATCHDOG_H_

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include "embedra/mpi/open_mpi.h"
#include "embedra/mpi/progress.h"

namespace embedra::mpi {

class Watchdog {
 public:
  // `comm` is used by the watchdogs alone. After `warn_after_s` seconds in a
  // collective, and again after as many, a line goes to standard error; after
  // `timeout_s` the job is aborted. 0 stands for never.
  Watchdog(const OpenMpi& mpi, Comm comm, int rank, int size,
           const ProgressBoard& board, double warn_after_s, double timeout_s);
  ~Watchdog();

 private:
  void Watch();
  void AnswerOthers(const Progress& own);
  void ReadAnswers();
  void AskOthers(int64_t sequence);
  void Judge(const Progress& own, double seconds);

  const OpenMpi& mpi_;
  const Comm comm_;
  const int rank_;
  const ProgressBoard& board_;
  const double warn_after_s_;
  const double timeout_s_;

  // What is known of the others since the current collective began.
  int64_t sequence_ = 0;
  double next_question_s_ = 0;
  double next_warning_s_ = 0;
  std::vector<std::optional<Progress>> answers_;
  std::vector<bool> asked_;  // and not yet answered

  std::atomic<bool> stopped_{false};
  std::thread thread_;
};

}  // namespace embedra::mpi

#endif  // EMBEDRA_MPI_WATCHDOG_H_
