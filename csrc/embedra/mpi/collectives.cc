#include "embedra/mpi/collectives.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>

namespace embedra::mpi {
namespace {

constexpr int64_t kMaxCount = std::numeric_limits<int>::max();
// Long exchanges are cut into pieces of this many elements.
constexpr int64_t kPiece = int64_t{1} << 30;

// Counts of rows, with where they begin, in the units of MPI: bytes if these
// are few enough, else rows.
class RowCounts {
 public:
  RowCounts(const std::vector<int64_t>& rows, int64_t row_bytes, bool as_bytes)
      : counts_(rows.size()), begins_(rows.size()) {
    const int64_t unit = as_bytes ? row_bytes : 1;
    int64_t begin = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      counts_[i] = static_cast<int>(rows[i] * unit);
      begins_[i] = static_cast<int>(begin);
      begin += rows[i] * unit;
    }
  }

  const int* counts() const { return counts_.data(); }
  const int* begins() const { return begins_.data(); }

 private:
  std::vector<int> counts_;
  std::vector<int> begins_;
};

int64_t Sum(const std::vector<int64_t>& rows) {
  return std::accumulate(rows.begin(), rows.end(), int64_t{0});
}

// The MPI type of a row, or of a byte.
class RowType {
 public:
  // `max_rows` is the largest number of rows on one side of the exchange.
  RowType(const OpenMpi& mpi, int64_t max_rows, int64_t row_bytes)
      : mpi_(mpi),
        as_bytes_(max_rows <= kMaxCount / std::max<int64_t>(row_bytes, 1)),
        type_(mpi.byte) {
    if (as_bytes_) return;
    if (max_rows > kMaxCount || row_bytes > kMaxCount) {
      status_ = Status::InvalidArgument(
          "Too much for one exchange: " + std::to_string(max_rows) +
          " rows of " + std::to_string(row_bytes) +
          " bytes; both must be below 2^31.");
      return;
    }
    status_ = mpi_.Check(
        mpi_.Type_contiguous(static_cast<int>(row_bytes), mpi_.byte, &type_),
        "MPI_Type_contiguous");
    if (status_.ok()) {
      status_ = mpi_.Check(mpi_.Type_commit(&type_), "MPI_Type_commit");
    }
  }
  ~RowType() {
    if (type_ != mpi_.byte) mpi_.Type_free(&type_);
  }
  RowType(const RowType&) = delete;
  RowType& operator=(const RowType&) = delete;

  const Status& status() const { return status_; }
  bool as_bytes() const { return as_bytes_; }
  Datatype type() const { return type_; }

 private:
  const OpenMpi& mpi_;
  const bool as_bytes_;
  Datatype type_;
  Status status_;
};

}  // namespace

Status Collectives::ExchangeHeaders(const CallHeader& own,
                                    std::vector<CallHeader>* headers) {
  headers->resize(size_);
  const int bytes = static_cast<int>(sizeof(CallHeader));
  return mpi_.Check(mpi_.Allgather(&own, bytes, mpi_.byte, headers->data(),
                                   bytes, mpi_.byte, comm_),
                    "MPI_Allgather");
}

Status Collectives::AllToAll(const int64_t* sent, int64_t* received, int n) {
  return mpi_.Check(
      mpi_.Alltoall(sent, n, mpi_.int64, received, n, mpi_.int64, comm_),
      "MPI_Alltoall");
}

Status Collectives::AllToAllV(const void* sent,
                              const std::vector<int64_t>& sent_rows,
                              void* received,
                              const std::vector<int64_t>& received_rows,
                              int64_t row_bytes) {
  const RowType row(mpi_, std::max(Sum(sent_rows), Sum(received_rows)),
                    row_bytes);
  if (!row.status().ok()) return row.status();
  const RowCounts to(sent_rows, row_bytes, row.as_bytes());
  const RowCounts from(received_rows, row_bytes, row.as_bytes());
  return mpi_.Check(
      mpi_.Alltoallv(sent, to.counts(), to.begins(), row.type(), received,
                     from.counts(), from.begins(), row.type(), comm_),
      "MPI_Alltoallv");
}

Status Collectives::AllGatherV(const void* sent, void* received,
                               const std::vector<int64_t>& rows,
                               int64_t row_bytes) {
  const RowType row(mpi_, Sum(rows), row_bytes);
  if (!row.status().ok()) return row.status();
  const RowCounts from(rows, row_bytes, row.as_bytes());
  return mpi_.Check(
      mpi_.Allgatherv(sent, from.counts()[rank_], row.type(), received,
                      from.counts(), from.begins(), row.type(), comm_),
      "MPI_Allgatherv");
}

Status Collectives::AllReduce(const void* sent, void* received, int64_t count,
                              Number number, Reduction reduction) {
  const struct {
    Datatype type;
    int64_t bytes;
  } types[] = {
      {mpi_.float32, 4}, {mpi_.float64, 8}, {mpi_.int32, 4}, {mpi_.int64, 8}};
  const ReduceOp ops[] = {mpi_.sum, mpi_.max, mpi_.min};
  const auto& type = types[static_cast<int>(number)];
  for (int64_t begin = 0; begin < count; begin += kPiece) {
    const int64_t n = std::min(kPiece, count - begin);
    const int64_t offset = begin * type.bytes;
    const Status status = mpi_.Check(
        mpi_.Allreduce(
            sent == nullptr ? InPlace()
                            : static_cast<const char*>(sent) + offset,
            static_cast<char*>(received) + offset, static_cast<int>(n),
            type.type, ops[static_cast<int>(reduction)], comm_),
        "MPI_Allreduce");
    if (!status.ok()) return status;
  }
  return Status();
}

Status Collectives::Broadcast(void* data, int64_t bytes, int root) {
  for (int64_t begin = 0; begin < bytes; begin += kPiece) {
    const int64_t n = std::min(kPiece, bytes - begin);
    const Status status =
        mpi_.Check(mpi_.Bcast(static_cast<char*>(data) + begin,
                              static_cast<int>(n), mpi_.byte, root, comm_),
                   "MPI_Bcast");
    if (!status.ok()) return status;
  }
  return Status();
}

}  // namespace embedra::mpi
