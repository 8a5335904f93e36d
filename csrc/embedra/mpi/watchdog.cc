#include "embedra/mpi/watchdog.h"

#include <chrono>
#include <cstdio>
#include <string>

namespace embedra::mpi {
namespace {

constexpr int kQuestionTag = 1;
constexpr int kAnswerTag = 2;
constexpr auto kPeriod = std::chrono::milliseconds(100);
// Others are first asked after so long in a collective, then as often.
constexpr double kQuestionPeriodS = 1.0;
// Nobody is said not to answer before this, after a collective has begun.
constexpr double kPatienceS = 2.0;

int Bytes() { return static_cast<int>(sizeof(Progress)); }

}  // namespace

Watchdog::Watchdog(const OpenMpi& mpi, Comm comm, int rank, int size,
                   const ProgressBoard& board, double warn_after_s,
                   double timeout_s)
    : mpi_(mpi),
      comm_(comm),
      rank_(rank),
      board_(board),
      warn_after_s_(warn_after_s),
      timeout_s_(timeout_s),
      answers_(size),
      asked_(size, false),
      thread_([this] { Watch(); }) {}

Watchdog::~Watchdog() {
  stopped_ = true;
  thread_.join();
}

void Watchdog::Watch() {
  while (!stopped_) {
    double seconds;
    const Progress own = board_.Read(&seconds);
    AnswerOthers(own);
    ReadAnswers();
    if (own.sequence != sequence_) {
      sequence_ = own.sequence;
      next_question_s_ = kQuestionPeriodS;
      next_warning_s_ = warn_after_s_;
      answers_.assign(answers_.size(), std::nullopt);
    }
    if (own.running) {
      if (seconds >= next_question_s_) {
        next_question_s_ = seconds + kQuestionPeriodS;
        AskOthers(own.sequence);
      }
      Judge(own, seconds);
    }
    std::this_thread::sleep_for(kPeriod);
  }
}

// Errors of the messages are passed over: who does not answer is reported.

void Watchdog::AnswerOthers(const Progress& own) {
  int is_there = 0;
  MessageStatus status;
  while (mpi_.Iprobe(kAnySource, kQuestionTag, comm_, &is_there, &status) ==
             0 &&
         is_there) {
    int64_t question;
    mpi_.Recv(&question, 1, mpi_.int64, status.source, kQuestionTag, comm_,
              &status);
    mpi_.Send(&own, Bytes(), mpi_.byte, status.source, kAnswerTag, comm_);
  }
}

void Watchdog::ReadAnswers() {
  int is_there = 0;
  MessageStatus status;
  while (mpi_.Iprobe(kAnySource, kAnswerTag, comm_, &is_there, &status) == 0 &&
         is_there) {
    Progress answer;
    mpi_.Recv(&answer, Bytes(), mpi_.byte, status.source, kAnswerTag, comm_,
              &status);
    answers_[status.source] = answer;
    asked_[status.source] = false;
  }
}

void Watchdog::AskOthers(int64_t sequence) {
  for (size_t other = 0; other < asked_.size(); ++other) {
    // One that does not answer is not asked again: its messages would pile up.
    if (static_cast<int>(other) == rank_ || asked_[other]) continue;
    asked_[other] = true;
    mpi_.Send(&sequence, 1, mpi_.int64, static_cast<int>(other), kQuestionTag,
              comm_);
  }
}

void Watchdog::Judge(const Progress& own, double seconds) {
  const int ended = EndedTooEarly(own, answers_);
  if (ended < 0 && seconds < kPatienceS) return;
  const bool times_out = timeout_s_ > 0 && seconds >= timeout_s_;
  const bool warns = warn_after_s_ > 0 && seconds >= next_warning_s_;
  if (ended < 0 && !times_out && !warns) return;
  next_warning_s_ = seconds + warn_after_s_;
  std::string late = DescribeLateRanks(own, rank_, answers_);
  if (late.empty()) late = "no rank is late: the exchange itself goes on";
  std::fprintf(
      stderr,
      "embedra: rank %d has waited for %.0f s in collective %lld, %s: %s.%s\n",
      rank_, seconds, static_cast<long long>(own.sequence),
      NameOf(own.header).c_str(), late.c_str(),
      ended >= 0  ? " The job is aborted."
      : times_out ? " That is the timeout: the job is aborted."
                  : "");
  std::fflush(stderr);
  if (ended >= 0 || times_out) mpi_.Abort(mpi_.world, 1);
}

}  // namespace embedra::mpi
