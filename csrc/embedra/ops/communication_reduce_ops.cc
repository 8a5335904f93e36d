// Ops by which ranks come to have the same numbers.

#include <algorithm>
#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "embedra/ops/communication_kernel.h"
#include "embedra/ops/pooled_outputs.h"
#include "embedra/ops/shape_functions.h"
#include "embedra/ops/tensors.h"
#include "tensorflow/core/framework/common_shape_fns.h"
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

REGISTER_OP("EmbedraAllReduce")
    .Input("communicator: resource")
    .Input("values: N * T")
    .Output("reduced: N * T")
    .Attr("N: int >= 1")
    .Attr("T: {float, double, half, bfloat16, int32, int64}")
    .Attr("reduction: {'sum', 'mean', 'max', 'min'}")
    .Attr("bucket_bytes: int >= 1")
    .Attr("label: string")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      std::vector<ShapeHandle> shapes;
      TF_RETURN_IF_ERROR(c->input("values", &shapes));
      return c->set_output("reduced", shapes);
    })
    .Doc(R"doc(
Reduces each tensor over the ranks. All ranks get the same bits.

Small tensors are joined to buckets of at least `bucket_bytes`. half and bfloat16
are added up, and sent, as float.
)doc");

REGISTER_OP("EmbedraBroadcast")
    .Input("communicator: resource")
    .Input("value: T")
    .Output("broadcasted: T")
    .Attr(
        "T: {float, double, half, bfloat16, int8, int16, int32, int64, uint8, "
        "uint16, uint32, uint64, bool}")
    .Attr("root: int >= 0")
    .Attr("label: string")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      c->set_output(0, c->input(1));
      return absl::OkStatus();
    })
    .Doc("Gives every rank the value that rank `root` has.");

// What elements of type T are reduced, and sent, as.
template <typename T>
struct Wire {
  using Type = float;
  static constexpr mpi::Number kNumber = mpi::Number::kFloat32;
};
template <>
struct Wire<double> {
  using Type = double;
  static constexpr mpi::Number kNumber = mpi::Number::kFloat64;
};
template <>
struct Wire<int32_t> {
  using Type = int32_t;
  static constexpr mpi::Number kNumber = mpi::Number::kInt32;
};
template <>
struct Wire<int64_t> {
  using Type = int64_t;
  static constexpr mpi::Number kNumber = mpi::Number::kInt64;
};

template <typename T>
class AllReduceOp : public CollectiveKernel {
  using WireType = typename Wire<T>::Type;

 public:
  explicit AllReduceOp(OpKernelConstruction* ctx) : CollectiveKernel(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("reduction", &reduction_));
    OP_REQUIRES_OK(ctx, ctx->GetAttr("bucket_bytes", &bucket_bytes_));
    OP_REQUIRES(ctx, reduction_ != "mean" || !std::is_integral<T>::value,
                absl::InvalidArgumentError(
                    "The mean of integers is none. Cast them, or use a sum."));
  }

 protected:
  absl::Status Prepare(OpKernelContext* ctx, const mpi::World&,
                       Call* call) override {
    OpInputList values;
    TF_RETURN_IF_ERROR(ctx->input_list("values", &values));
    call->header =
        mpi::MakeHeader(CallKind::kAllReduce, label(),
                        reduction_ + " " + LayoutText(values, false), 0);
    call->exchange = [this, ctx](Collectives& collectives,
                                 const std::vector<CallHeader>&) {
      OpInputList values;
      OpOutputList outputs;
      absl::Status found = ctx->input_list("values", &values);
      found.Update(ctx->output_list("reduced", &outputs));
      if (!found.ok()) return ToCore(found);
      return ReduceAll(values, outputs, collectives);
    };
    return absl::OkStatus();
  }

 private:
  Status ReduceAll(OpInputList& values, OpOutputList& outputs,
                   Collectives& collectives) {
    std::vector<Tensor*> reduced(values.size());
    for (int i = 0; i < values.size(); ++i) {
      const absl::Status allocated =
          AllocatePooled(outputs, i, values[i].shape(), &reduced[i]);
      if (!allocated.ok()) return ToCore(allocated);
    }
    int begin = 0;
    while (begin < values.size()) {
      int64_t bytes = 0;
      int end = begin;
      while (end < values.size() && bytes < bucket_bytes_) {
        bytes += values[end++].NumElements() * sizeof(WireType);
      }
      const Status status =
          end - begin == 1 && std::is_same<T, WireType>::value
              ? ReduceOne(values[begin], reduced[begin], collectives)
              : ReduceBucket(values, reduced, begin, end, collectives);
      if (!status.ok()) return status;
      begin = end;
    }
    return Status();
  }

  Status ReduceOne(const Tensor& value, Tensor* reduced,
                   Collectives& collectives) {
    const int64_t n = value.NumElements();
    void* numbers = MutableRawData(reduced);
    const Status status = collectives.AllReduce(
        RawData(value), numbers, n, Wire<T>::kNumber, WireReduction());
    Scale(static_cast<WireType*>(numbers), n, collectives);
    return status;
  }

  // Joins tensors [begin, end), and reduces them together.
  Status ReduceBucket(const OpInputList& values,
                      const std::vector<Tensor*>& reduced, int begin, int end,
                      Collectives& collectives) {
    std::vector<WireType> bucket;
    for (int i = begin; i < end; ++i) {
      const T* numbers = Data<T>(values[i]);
      for (int64_t j = 0; j < values[i].NumElements(); ++j) {
        bucket.push_back(static_cast<WireType>(numbers[j]));
      }
    }
    const int64_t n = static_cast<int64_t>(bucket.size());
    const Status status = collectives.AllReduce(
        nullptr, bucket.data(), n, Wire<T>::kNumber, WireReduction());
    Scale(bucket.data(), n, collectives);
    const WireType* from = bucket.data();
    for (int i = begin; i < end; ++i) {
      T* numbers = MutableData<T>(reduced[i]);
      for (int64_t j = 0; j < values[i].NumElements(); ++j) {
        numbers[j] = static_cast<T>(*from++);
      }
    }
    return status;
  }

  mpi::Reduction WireReduction() const {
    if (reduction_ == "max") return mpi::Reduction::kMax;
    if (reduction_ == "min") return mpi::Reduction::kMin;
    return mpi::Reduction::kSum;
  }

  // Makes sums means, where these are asked for.
  void Scale(WireType* numbers, int64_t n,
             const Collectives& collectives) const {
    if (reduction_ != "mean") return;
    const WireType size = static_cast<WireType>(collectives.size());
    for (int64_t i = 0; i < n; ++i) numbers[i] /= size;
  }

  std::string reduction_;
  int64_t bucket_bytes_;
};

class BroadcastOp : public CollectiveKernel {
 public:
  explicit BroadcastOp(OpKernelConstruction* ctx) : CollectiveKernel(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("root", &root_));
  }

 protected:
  absl::Status Prepare(OpKernelContext* ctx, const mpi::World& world,
                       Call* call) override {
    const Tensor& value = ctx->input(1);
    call->header =
        mpi::MakeHeader(CallKind::kBroadcast, label(),
                        absl::StrCat("rank ", root_, " ",
                                     tensorflow::DataTypeString(value.dtype()),
                                     " ", ShapeText(value, false)),
                        0);
    call->exchange = [this, ctx](Collectives& collectives,
                                 const std::vector<CallHeader>&) {
      const Tensor& value = ctx->input(1);
      Tensor* output;
      const absl::Status allocated =
          ctx->allocate_output(0, value.shape(), &output);
      if (!allocated.ok()) return ToCore(allocated);
      const int64_t bytes = static_cast<int64_t>(value.TotalBytes());
      if (collectives.rank() == root_ && bytes > 0) {
        std::memcpy(MutableRawData(output), RawData(value), bytes);
      }
      return collectives.Broadcast(MutableRawData(output), bytes, root_);
    };
    if (root_ < world.size()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("`root` must be one of the ", world.size(),
                     " ranks. Received: root=", root_, "."));
  }

 private:
  int root_;
};

#define EMBEDRA_REGISTER(T)                                   \
  REGISTER_KERNEL_BUILDER(Name("EmbedraAllReduce")            \
                              .Device(tensorflow::DEVICE_CPU) \
                              .TypeConstraint<T>("T"),        \
                          AllReduceOp<T>)
EMBEDRA_REGISTER(float);
EMBEDRA_REGISTER(double);
EMBEDRA_REGISTER(Eigen::half);
EMBEDRA_REGISTER(Eigen::bfloat16);
EMBEDRA_REGISTER(int32_t);
EMBEDRA_REGISTER(int64_t);
#undef EMBEDRA_REGISTER
REGISTER_KERNEL_BUILDER(Name("EmbedraBroadcast").Device(tensorflow::DEVICE_CPU),
                        BroadcastOp);

}  // namespace
}  // namespace embedra
