// Op that finds out which keys of a batch go to which rank.

#include <cstdint>
#include <vector>

#include "embedra/core/grouping.h"
#include "embedra/core/hash.h"
#include "embedra/ops/table_parallel.h"
#include "embedra/ops/tensors.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace embedra {
namespace {

using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;

REGISTER_OP("EmbedraRouteKeys")
    .Input("keys: int64")
    .Output("unique: int64")
    .Output("splits: int64")
    .Output("index: int64")
    .Attr("num_parts: int >= 1")
    .SetShapeFn([](tensorflow::shape_inference::InferenceContext* c) {
      tensorflow::shape_inference::ShapeHandle keys;
      int parts;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 1, &keys));
      TF_RETURN_IF_ERROR(c->GetAttr("num_parts", &parts));
      c->set_output(0, c->Vector(c->UnknownDim()));
      c->set_output(1, c->Vector(parts));
      c->set_output(2, keys);
      return absl::OkStatus();
    })
    .Doc(R"doc(
Finds the distinct keys of a batch, ordered by the part that each belongs to.

unique: Each key once; those of part 0 first.
splits: How many of them belong to each part.
index: Where in `unique` each of `keys` is.
)doc");

class RouteKeysOp : public tensorflow::OpKernel {
 public:
  explicit RouteKeysOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("num_parts", &num_parts_));
  }

  void Compute(OpKernelContext* ctx) override {
    const Tensor& keys = ctx->input(0);
    const int64_t n = keys.NumElements();
    OP_REQUIRES(ctx, keys.dims() == 1 && n < internal::Grouping::kMaxEntries,
                absl::InvalidArgumentError(
                    "`keys` must be a vector of less than 2^31 keys."));
    const auto grouping = internal::Grouping::OfKeys(
        Data<int64_t>(keys), nullptr, n, DeviceParallelFor(ctx));
    // Counting sort of the groups by part.
    std::vector<int64_t> splits(num_parts_, 0);
    ForEachGroup(grouping, [&](int64_t group) {
      ++splits[PartOf(grouping.value(group))];
    });
    std::vector<int64_t> next(num_parts_, 0);
    for (int part = 1; part < num_parts_; ++part) {
      next[part] = next[part - 1] + splits[part - 1];
    }
    Tensor *unique, *index;
    OP_REQUIRES_OK(
        ctx, ctx->allocate_output(
                 0, tensorflow::TensorShape({grouping.num_groups()}), &unique));
    OP_REQUIRES_OK(ctx, SetVectorOutput(ctx, "splits", splits));
    OP_REQUIRES_OK(ctx, ctx->allocate_output(2, keys.shape(), &index));
    int64_t* to = MutableData<int64_t>(unique);
    int64_t* places = MutableData<int64_t>(index);
    ForEachGroup(grouping, [&](int64_t group) {
      const int64_t place = next[PartOf(grouping.value(group))]++;
      to[place] = grouping.value(group);
      const uint32_t* members = grouping.members(group);
      for (int64_t i = 0; i < grouping.count(group); ++i) {
        places[members[i]] = place;
      }
    });
  }

 private:
  template <typename Body>
  static void ForEachGroup(const internal::Grouping& grouping,
                           const Body& body) {
    for (int part = 0; part < grouping.parts(); ++part) {
      for (int64_t group = grouping.group_begin(part);
           group < grouping.group_end(part); ++group) {
        body(group);
      }
    }
  }

  // A table spreads its keys by the hash. This hashes once more, so that the
  // keys of one part are spread as evenly as all.
  int PartOf(int64_t key) const {
    return static_cast<int>(internal::Mix64(internal::HashKey(key)) %
                            static_cast<uint64_t>(num_parts_));
  }

  int num_parts_;
};

REGISTER_KERNEL_BUILDER(Name("EmbedraRouteKeys").Device(tensorflow::DEVICE_CPU),
                        RouteKeysOp);

}  // namespace
}  // namespace embedra
