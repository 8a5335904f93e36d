#include "embedra/mpi/world.h"

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <utility>

namespace embedra::mpi {
namespace {

#define EMBEDRA_MPI_RETURN_IF_ERROR(mpi, call)                   \
  do {                                                           \
    const Status status = (mpi).Check((mpi).call, "MPI_" #call); \
    if (!status.ok()) return status;                             \
  } while (false)

constexpr std::chrono::microseconds kLookFor(50);

// Never deleted: calls may come from threads that outlive everything.
std::atomic<World*> the_world{nullptr};
std::mutex start_mutex;
bool was_started = false;

// Signals are for the program's own threads, which Python's main thread is.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace

Status World::Start(const WorldOptions& options) {
  std::lock_guard<std::mutex> start_lock(start_mutex);
  if (was_started) {
    return Status::FailedPrecondition(
        "MPI can be started once in a process, and it was.");
  }
  auto* world = new World(options);
  Status loaded = OpenMpi::Load(options.library, &world->mpi_);
  if (!loaded.ok()) {
    delete world;
    return loaded;
  }
  was_started = true;
  {
    SignalsBlocked for_new_threads;
    world->thread_ = std::thread([world] { world->Communicate(); });
  }
  std::unique_lock<std::mutex> lock(world->mutex_);
  world->changed_.wait(lock, [world] { return world->started_; });
  if (!world->start_status_.ok()) {
    lock.unlock();
    world->thread_.join();
    return world->start_status_;
  }
  the_world = world;
  return Status();
}

World* World::Get() { return the_world; }

Status World::End() {
  World* world = the_world.exchange(nullptr);
  if (world == nullptr) return Status();
  {
    std::lock_guard<std::mutex> lock(world->mutex_);
    world->ending_ = true;
  }
  world->changed_.notify_all();
  world->thread_.join();
  return world->end_status_;
}

void World::Abort(int code) {
  World* world = the_world;
  if (world != nullptr) world->mpi_.Abort(world->mpi_.world, code);
}

void World::Submit(Call call) {
  call.header.failed = call.problem.empty() ? 0 : 1;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!ending_) {
      calls_.push_back(std::move(call));
      waiting_ = true;
      call.done = nullptr;
    }
  }
  changed_.notify_all();
  if (call.done) {
    call.done(Status::FailedPrecondition("MPI has ended in this process."));
  }
}

Status World::Initialize() {
  int flag = 0;
  EMBEDRA_MPI_RETURN_IF_ERROR(mpi_, Finalized(&flag));
  if (flag) {
    return Status::FailedPrecondition("MPI has ended in this process.");
  }
  EMBEDRA_MPI_RETURN_IF_ERROR(mpi_, Initialized(&flag));
  int provided = 0;
  if (flag) {
    EMBEDRA_MPI_RETURN_IF_ERROR(mpi_, Query_thread(&provided));
  } else {
    EMBEDRA_MPI_RETURN_IF_ERROR(
        mpi_, Init_thread(nullptr, nullptr, kThreadMultiple, &provided));
    initialized_here_ = true;
  }
  if (provided < kThreadMultiple) {
    return Status::FailedPrecondition(
        "MPI must be usable by several threads at once, but " +
        std::string(flag ? "was initialized" : "can be initialized only") +
        " with thread level " + std::to_string(provided) +
        " in place of MPI_THREAD_MULTIPLE (3).");
  }
  return FindPlace();
}

Status World::FindPlace() {
  EMBEDRA_MPI_RETURN_IF_ERROR(mpi_, Comm_dup(mpi_.world, &data_comm_));
  EMBEDRA_MPI_RETURN_IF_ERROR(
      mpi_, Comm_set_errhandler(data_comm_, mpi_.errors_return));
  EMBEDRA_MPI_RETURN_IF_ERROR(mpi_, Comm_dup(data_comm_, &watch_comm_));
  EMBEDRA_MPI_RETURN_IF_ERROR(mpi_, Comm_rank(data_comm_, &rank_));
  EMBEDRA_MPI_RETURN_IF_ERROR(mpi_, Comm_size(data_comm_, &size_));
  Comm here;
  EMBEDRA_MPI_RETURN_IF_ERROR(
      mpi_,
      Comm_split_type(data_comm_, kSharedMemory, rank_, mpi_.no_info, &here));
  EMBEDRA_MPI_RETURN_IF_ERROR(mpi_, Comm_rank(here, &local_rank_));
  EMBEDRA_MPI_RETURN_IF_ERROR(mpi_, Comm_size(here, &local_size_));
  EMBEDRA_MPI_RETURN_IF_ERROR(mpi_, Comm_free(&here));
  return Status();
}

void World::Communicate() {
  Status status = Initialize();
  if (status.ok()) {
    watchdog_ =
        std::make_unique<Watchdog>(mpi_, watch_comm_, rank_, size_, board_,
                                   options_.warn_after_s, options_.timeout_s);
  }
  std::unique_lock<std::mutex> lock(mutex_);
  start_status_ = status;
  started_ = true;
  changed_.notify_all();
  if (!status.ok()) return;
  Collectives collectives(mpi_, data_comm_, rank_, size_);
  while (true) {
    if (!ending_ && calls_.empty()) {
      lock.unlock();
      AwaitSoon();
      lock.lock();
    }
    changed_.wait(lock, [this] { return ending_ || !calls_.empty(); });
    if (calls_.empty()) break;
    Call call = std::move(calls_.front());
    calls_.pop_front();
    waiting_ = !calls_.empty();
    lock.unlock();
    call.done(Run(collectives, call));
    call = Call();
    lock.lock();
  }
  lock.unlock();
  end_status_ = Finalize();
}

// Calls often follow one another: to be woken takes longer than to look.
void World::AwaitSoon() const {
  const auto until = std::chrono::steady_clock::now() + kLookFor;
  while (!waiting_ && std::chrono::steady_clock::now() < until) {
    std::this_thread::yield();
  }
}

Status World::Run(Collectives& collectives, const Call& call) {
  const int64_t sequence = board_.Begin(call.header);
  std::vector<CallHeader> headers;
  Status status = collectives.ExchangeHeaders(call.header, &headers);
  if (status.ok()) {
    status = CheckHeaders(sequence, rank_, call.problem, headers);
  }
  if (status.ok()) status = call.exchange(collectives, headers);
  board_.Finish();
  return status;
}

Status World::Finalize() {
  // Until all ranks are here, the watchdog says that this one is.
  board_.End();
  Request request;
  EMBEDRA_MPI_RETURN_IF_ERROR(mpi_, Ibarrier(watch_comm_, &request));
  int done = 0;
  while (true) {
    MessageStatus message;
    EMBEDRA_MPI_RETURN_IF_ERROR(mpi_, Test(&request, &done, &message));
    if (done) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  watchdog_.reset();
  if (initialized_here_) EMBEDRA_MPI_RETURN_IF_ERROR(mpi_, Finalize());
  return Status();
}

}  // namespace embedra::mpi
