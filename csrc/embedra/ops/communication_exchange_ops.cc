// Ops by which rows go from rank to rank as they are.

#include <cstring>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "embedra/core/memory_pool.h"
#include "embedra/ops/communication_kernel.h"
#include "embedra/ops/pooled_outputs.h"
#include "embedra/ops/shape_functions.h"
#include "embedra/ops/tensors.h"
#include "tensorflow/core/framework/op.h"

namespace embedra {
namespace {

using mpi::Call;
using mpi::CallHeader;
using mpi::CallKind;
using mpi::Collectives;
using tensorflow::OpInputList;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::OpOutputList;
using tensorflow::Tensor;
using tensorflow::TensorShape;

// Of each tensor of a list: rows for each rank.
using Splits = std::vector<std::vector<int64_t>>;

#define EMBEDRA_MOVABLE_TYPES                                          \
  "{float, double, half, bfloat16, int8, int16, int32, int64, uint8, " \
  "uint16, uint32, uint64, bool}"

// A shape with another number of rows.
absl::Status WithRows(InferenceContext* c, ShapeHandle rows,
                      ShapeHandle* result) {
  TF_RETURN_IF_ERROR(c->WithRankAtLeast(rows, 1, &rows));
  return c->ReplaceDim(rows, 0, c->UnknownDim(), result);
}

REGISTER_OP("EmbedraAllToAllV")
    .Input("communicator: resource")
    .Input("values: N * T")
    .Input("splits: N * int64")
    .Input("receive_splits: M * int64")
    .Output("received: N * T")
    .Output("received_splits: N * int64")
    .Attr("N: int >= 1")
    .Attr("M: int >= 0")
    .Attr("T: " EMBEDRA_MOVABLE_TYPES)
    .Attr("label: string")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      std::vector<ShapeHandle> values, splits;
      TF_RETURN_IF_ERROR(c->input("values", &values));
      TF_RETURN_IF_ERROR(c->input("splits", &splits));
      for (ShapeHandle& shape : values) {
        TF_RETURN_IF_ERROR(WithRows(c, shape, &shape));
      }
      for (ShapeHandle& shape : splits) {
        TF_RETURN_IF_ERROR(c->WithRank(shape, 1, &shape));
      }
      TF_RETURN_IF_ERROR(c->set_output("received", values));
      return c->set_output("received_splits", splits);
    })
    .Doc(R"doc(
Sends rows of each tensor to each rank, and gets those that each rank sends here.

splits: How many rows go to each rank; the first ones to rank 0.
receive_splits: Of each tensor how many rows come from each rank, if that is
  known (M = N); else (M = 0) ranks tell each other first.
received: The rows of rank 0 first.
)doc");

REGISTER_OP("EmbedraAllGatherV")
    .Input("communicator: resource")
    .Input("value: T")
    .Output("gathered: T")
    .Output("row_counts: int64")
    .Attr("T: " EMBEDRA_MOVABLE_TYPES)
    .Attr("label: string")
    .Attr("any_label: bool = false")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      ShapeHandle shape;
      TF_RETURN_IF_ERROR(WithRows(c, c->input(0 + 1), &shape));
      c->set_output(0, shape);
      c->set_output(1, c->Vector(InferenceContext::kUnknownDim));
      return absl::OkStatus();
    })
    .Doc(R"doc(
Gives every rank the rows of all ranks, those of rank 0 first.

any_label: Whether ranks may call it by different labels; the same on all.
row_counts: How many rows each rank gave.
)doc");

absl::Status CheckSplits(const char* name, const Tensor& splits, int size,
                         int64_t rows) {
  bool valid = splits.dims() == 1 && splits.dim_size(0) == size;
  int64_t sum = 0;
  for (int r = 0; valid && r < size; ++r) {
    const int64_t split = splits.vec<int64_t>()(r);
    valid = split >= 0;
    sum += split;
  }
  if (valid && (rows < 0 || sum == rows)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "`", name, "` must have a number of rows for each of the ", size,
      " ranks, none negative",
      rows < 0 ? std::string()
               : absl::StrCat(", which add up to the ", rows, " rows given"),
      ". Received: ", name, "=", splits.SummarizeValue(16), " of shape ",
      splits.shape().DebugString(), "."));
}

std::vector<int64_t> ToVector(const Tensor& splits) {
  const auto values = splits.vec<int64_t>();
  return std::vector<int64_t>(values.data(), values.data() + values.size());
}

int64_t Sum(const std::vector<int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), int64_t{0});
}

// One side of an exchange of several tensors: copies them to or from a buffer
// that holds all that goes to, or comes from, rank 0, then rank 1 and so on.
class Packing {
 public:
  Packing(const Splits& splits, const std::vector<int64_t>& row_bytes, int size)
      : splits_(splits), row_bytes_(row_bytes), bytes_(size, 0) {
    for (size_t i = 0; i < splits.size(); ++i) {
      for (int r = 0; r < size; ++r) bytes_[r] += splits[i][r] * row_bytes[i];
    }
    buffer_ = internal::PooledMemory(Sum(bytes_));
  }

  char* buffer() { return buffer_.data(); }
  // For each rank.
  const std::vector<int64_t>& bytes() const { return bytes_; }

  // Calls `copy(part of the buffer, i, offset in tensor i, bytes)`.
  template <typename Copy>
  void ForEachPart(const Copy& copy) {
    std::vector<int64_t> offsets(splits_.size(), 0);
    char* part = buffer_.data();
    for (size_t r = 0; r < bytes_.size(); ++r) {
      for (size_t i = 0; i < splits_.size(); ++i) {
        const int64_t n = splits_[i][r] * row_bytes_[i];
        if (n > 0) copy(part, i, offsets[i], n);
        offsets[i] += n;
        part += n;
      }
    }
  }

 private:
  const Splits& splits_;
  const std::vector<int64_t>& row_bytes_;
  std::vector<int64_t> bytes_;
  internal::PooledMemory buffer_;
};

class AllToAllVOp : public CollectiveKernel {
 public:
  using CollectiveKernel::CollectiveKernel;

 protected:
  // What an exchange works on; kept until it is done.
  struct Exchange {
    OpKernelContext* ctx;
    OpInputList values;
    bool is_told;  // whether `received` is known
    Splits sent;
    Splits received;
    std::vector<int64_t> row_bytes;
    std::vector<Tensor*> outputs;
  };

  absl::Status Prepare(OpKernelContext* ctx, const mpi::World& world,
                       Call* call) override {
    auto exchange = std::make_shared<Exchange>();
    exchange->ctx = ctx;
    OpInputList splits, receive_splits;
    TF_RETURN_IF_ERROR(ctx->input_list("values", &exchange->values));
    TF_RETURN_IF_ERROR(ctx->input_list("splits", &splits));
    TF_RETURN_IF_ERROR(ctx->input_list("receive_splits", &receive_splits));
    exchange->is_told = receive_splits.size() > 0;
    const OpInputList& values = exchange->values;
    int64_t bytes = 0;
    for (const Tensor& value : values) bytes += value.TotalBytes();
    call->header = mpi::MakeHeader(
        CallKind::kAllToAllV, label(),
        LayoutText(values, true) + (exchange->is_told ? " back" : ""), bytes);
    call->exchange = [exchange](Collectives& collectives,
                                const std::vector<CallHeader>& headers) {
      return ToCore(Run(*exchange, collectives, headers));
    };
    for (int i = 0; i < values.size(); ++i) {
      if (values[i].dims() == 0) {
        return absl::InvalidArgumentError(
            "`values` must have rows. Received: a scalar.");
      }
      TF_RETURN_IF_ERROR(CheckSplits("splits", splits[i], world.size(),
                                     values[i].dim_size(0)));
      exchange->sent.push_back(ToVector(splits[i]));
      exchange->row_bytes.push_back(RowBytes(values[i]));
      if (!exchange->is_told) continue;
      TF_RETURN_IF_ERROR(
          CheckSplits("receive_splits", receive_splits[i], world.size(), -1));
      exchange->received.push_back(ToVector(receive_splits[i]));
    }
    return absl::OkStatus();
  }

 private:
  static absl::Status FromCore(const Status& status) {
    return status.ok() ? absl::OkStatus()
                       : absl::InternalError(status.message());
  }

  static absl::Status Run(Exchange& exchange, Collectives& collectives,
                          const std::vector<CallHeader>& headers) {
    if (!exchange.is_told) {
      TF_RETURN_IF_ERROR(ExchangeSplits(exchange, collectives));
    }
    TF_RETURN_IF_ERROR(AllocateOutputs(exchange));
    // All ranks choose alike. Counts of packed values are in bytes, and `int`.
    double total = 0;
    for (const CallHeader& header : headers) {
      total += static_cast<double>(header.rows);
    }
    if (exchange.outputs.size() > 1 && total < 2e9) {
      return ExchangePacked(exchange, collectives);
    }
    return ExchangeOneByOne(exchange, collectives);
  }

  static absl::Status ExchangeSplits(Exchange& exchange,
                                     Collectives& collectives) {
    const size_t n = exchange.sent.size();
    const size_t size = collectives.size();
    std::vector<int64_t> sent(n * size), received(n * size);
    for (size_t r = 0; r < size; ++r) {
      for (size_t i = 0; i < n; ++i) sent[r * n + i] = exchange.sent[i][r];
    }
    TF_RETURN_IF_ERROR(FromCore(collectives.AllToAll(
        sent.data(), received.data(), static_cast<int>(n))));
    exchange.received.assign(n, std::vector<int64_t>(size));
    for (size_t r = 0; r < size; ++r) {
      for (size_t i = 0; i < n; ++i) {
        exchange.received[i][r] = received[r * n + i];
      }
    }
    return absl::OkStatus();
  }

  static absl::Status AllocateOutputs(Exchange& exchange) {
    OpOutputList received, received_splits;
    TF_RETURN_IF_ERROR(exchange.ctx->output_list("received", &received));
    TF_RETURN_IF_ERROR(
        exchange.ctx->output_list("received_splits", &received_splits));
    for (int i = 0; i < received.size(); ++i) {
      const std::vector<int64_t>& rows = exchange.received[i];
      TensorShape shape = exchange.values[i].shape();
      shape.set_dim(0, Sum(rows));
      Tensor *values, *splits;
      TF_RETURN_IF_ERROR(AllocatePooled(received, i, shape, &values));
      TF_RETURN_IF_ERROR(received_splits.allocate(
          i, TensorShape({static_cast<int64_t>(rows.size())}), &splits));
      std::copy(rows.begin(), rows.end(), MutableData<int64_t>(splits));
      exchange.outputs.push_back(values);
    }
    return absl::OkStatus();
  }

  static absl::Status ExchangeOneByOne(Exchange& exchange,
                                       Collectives& collectives) {
    for (size_t i = 0; i < exchange.outputs.size(); ++i) {
      TF_RETURN_IF_ERROR(FromCore(
          collectives.AllToAllV(RawData(exchange.values[i]), exchange.sent[i],
                                MutableRawData(exchange.outputs[i]),
                                exchange.received[i], exchange.row_bytes[i])));
    }
    return absl::OkStatus();
  }

  static absl::Status ExchangePacked(Exchange& exchange,
                                     Collectives& collectives) {
    Packing sent(exchange.sent, exchange.row_bytes, collectives.size());
    Packing received(exchange.received, exchange.row_bytes, collectives.size());
    sent.ForEachPart([&](char* part, size_t i, int64_t offset, int64_t n) {
      const void* values = RawData(exchange.values[i]);
      std::memcpy(part, static_cast<const char*>(values) + offset, n);
    });
    TF_RETURN_IF_ERROR(FromCore(
        collectives.AllToAllV(sent.buffer(), sent.bytes(), received.buffer(),
                              received.bytes(), /*row_bytes=*/1)));
    received.ForEachPart([&](char* part, size_t i, int64_t offset, int64_t n) {
      void* values = MutableRawData(exchange.outputs[i]);
      std::memcpy(static_cast<char*>(values) + offset, part, n);
    });
    return absl::OkStatus();
  }
};

class AllGatherVOp : public CollectiveKernel {
 public:
  explicit AllGatherVOp(OpKernelConstruction* ctx) : CollectiveKernel(ctx) {
    bool any_label;
    OP_REQUIRES_OK(ctx, ctx->GetAttr("any_label", &any_label));
    labels_ = any_label ? mpi::Labels::kAny : mpi::Labels::kSame;
  }

 protected:
  absl::Status Prepare(OpKernelContext* ctx, const mpi::World&,
                       Call* call) override {
    const Tensor& value = ctx->input(1);
    const bool has_rows = value.dims() > 0;
    call->header =
        mpi::MakeHeader(CallKind::kAllGatherV, label(),
                        absl::StrCat(tensorflow::DataTypeString(value.dtype()),
                                     " ", ShapeText(value, true)),
                        has_rows ? value.dim_size(0) : 0, labels_);
    call->exchange = [ctx](Collectives& collectives,
                           const std::vector<CallHeader>& headers) {
      return Run(ctx, collectives, headers);
    };
    if (has_rows) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "`value` must have rows. Received: a scalar.");
  }

 private:
  static Status Run(OpKernelContext* ctx, Collectives& collectives,
                    const std::vector<CallHeader>& headers) {
    const Tensor& value = ctx->input(1);
    std::vector<int64_t> rows;
    for (const CallHeader& header : headers) rows.push_back(header.rows);
    TensorShape shape = value.shape();
    shape.set_dim(0, Sum(rows));
    Tensor* gathered;
    absl::Status allocated = AllocatePooled(ctx, 0, shape, &gathered);
    allocated.Update(SetVectorOutput(ctx, "row_counts", rows));
    if (!allocated.ok()) return ToCore(allocated);
    return collectives.AllGatherV(RawData(value), MutableRawData(gathered),
                                  rows, RowBytes(value));
  }

  mpi::Labels labels_ = mpi::Labels::kSame;
};

REGISTER_KERNEL_BUILDER(Name("EmbedraAllToAllV").Device(tensorflow::DEVICE_CPU),
                        AllToAllVOp);
REGISTER_KERNEL_BUILDER(
    Name("EmbedraAllGatherV").Device(tensorflow::DEVICE_CPU), AllGatherVOp);

}  // namespace
}  // namespace embedra
