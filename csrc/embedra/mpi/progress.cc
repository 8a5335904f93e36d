#include "embedra/mpi/progress.h"

namespace embedra::mpi {
namespace {

bool IsBehind(const Progress& other, const Progress& own) {
  return other.sequence < own.sequence;
}

std::string DescribeLateRank(int rank, const Progress& progress) {
  std::string text = "rank " + std::to_string(rank);
  if (progress.ended) return text + " has ended";
  if (progress.sequence == 0) return text + " has not begun any collective";
  text += progress.running ? " is in" : " has last finished";
  return text + " collective " + std::to_string(progress.sequence) + ", " +
         NameOf(progress.header);
}

}  // namespace

int64_t ProgressBoard::Begin(const CallHeader& header) {
  std::lock_guard<std::mutex> lock(mutex_);
  progress_.header = header;
  progress_.running = 1;
  begun_ = Clock::now();
  return ++progress_.sequence;
}

void ProgressBoard::Finish() {
  std::lock_guard<std::mutex> lock(mutex_);
  progress_.running = 0;
}

void ProgressBoard::End() {
  std::lock_guard<std::mutex> lock(mutex_);
  progress_.ended = 1;
}

Progress ProgressBoard::Read(double* seconds) const {
  std::lock_guard<std::mutex> lock(mutex_);
  *seconds = std::chrono::duration<double>(Clock::now() - begun_).count();
  return progress_;
}

std::string DescribeLateRanks(
    const Progress& own, int rank,
    const std::vector<std::optional<Progress>>& answers) {
  std::string text;
  for (size_t other = 0; other < answers.size(); ++other) {
    if (static_cast<int>(other) == rank) continue;
    const std::optional<Progress>& answer = answers[other];
    if (answer && !IsBehind(*answer, own)) continue;
    if (!text.empty()) text += "; ";
    text += answer ? DescribeLateRank(static_cast<int>(other), *answer)
                   : "rank " + std::to_string(other) + " does not answer";
  }
  return text;
}

int EndedTooEarly(const Progress& own,
                  const std::vector<std::optional<Progress>>& answers) {
  for (size_t other = 0; other < answers.size(); ++other) {
    const std::optional<Progress>& answer = answers[other];
    if (answer && answer->ended && IsBehind(*answer, own)) {
      return static_cast<int>(other);
    }
  }
  return -1;
}

}  // namespace embedra::mpi
