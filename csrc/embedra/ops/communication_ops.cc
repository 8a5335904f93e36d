// Ops that start and end MPI, and the barrier.

#include <string>

#include "absl/strings/str_cat.h"
#include "embedra/mpi/world.h"
#include "embedra/ops/communication_kernel.h"
#include "embedra/ops/status_convert.h"
#include "embedra/ops/tensors.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/resource_op_kernel.h"

namespace embedra {
namespace {

using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;

REGISTER_OP("EmbedraMpiStart")
    .Attr("library: string")
    .Attr("warn_after: float")
    .Attr("timeout: float")
    .Output("place: int32")
    .Output("version: string")
    .SetIsStateful()
    .SetShapeFn([](tensorflow::shape_inference::InferenceContext* c) {
      c->set_output(0, c->Vector(4));
      c->set_output(1, c->Scalar());
      return absl::OkStatus();
    })
    .Doc(R"doc(
Loads an MPI library and starts it. Once in a process; waits for all ranks.

place: Rank, number of ranks, and both on this machine.
version: Of the library.
)doc");

REGISTER_OP("EmbedraMpiEnd")
    .SetIsStateful()
    .SetShapeFn(tensorflow::shape_inference::NoOutputs)
    .Doc("Ends MPI. Waits for all ranks. Without MPI it does nothing.");

REGISTER_OP("EmbedraMpiAbort")
    .Attr("code: int")
    .SetIsStateful()
    .SetShapeFn(tensorflow::shape_inference::NoOutputs)
    .Doc("Ends the processes of all ranks. Without MPI it does nothing.");

REGISTER_OP("EmbedraMpiCommunicator")
    .Attr("container: string = ''")
    .Attr("shared_name: string = 'embedra_mpi'")
    .Output("communicator: resource")
    .SetIsStateful()
    .SetShapeFn(tensorflow::shape_inference::ScalarShape)
    .Doc("A handle to all ranks, by which collectives are kept in order.");

REGISTER_OP("EmbedraBarrier")
    .Input("communicator: resource")
    .Attr("label: string")
    .SetIsStateful()
    .SetShapeFn(tensorflow::shape_inference::NoOutputs)
    .Doc("Waits for all ranks.");

class MpiStartOp : public tensorflow::OpKernel {
 public:
  explicit MpiStartOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    float warn_after, timeout;
    OP_REQUIRES_OK(ctx, ctx->GetAttr("library", &options_.library));
    OP_REQUIRES_OK(ctx, ctx->GetAttr("warn_after", &warn_after));
    OP_REQUIRES_OK(ctx, ctx->GetAttr("timeout", &timeout));
    options_.warn_after_s = warn_after;
    options_.timeout_s = timeout;
  }

  void Compute(OpKernelContext* ctx) override {
    OP_REQUIRES_OK(ctx, ToAbsl(mpi::World::Start(options_)));
    mpi::World* world;
    OP_REQUIRES_OK(ctx, GetWorld(&world));
    OP_REQUIRES_OK(
        ctx, SetVectorOutput(ctx, "place",
                             std::vector<int32_t>{world->rank(), world->size(),
                                                  world->local_rank(),
                                                  world->local_size()}));
    OP_REQUIRES_OK(ctx, SetScalarOutput(ctx, "version",
                                        tensorflow::tstring(world->version())));
  }

 private:
  mpi::WorldOptions options_;
};

class MpiEndOp : public tensorflow::OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* ctx) override {
    OP_REQUIRES_OK(ctx, ToAbsl(mpi::World::End()));
  }
};

class MpiAbortOp : public tensorflow::OpKernel {
 public:
  explicit MpiAbortOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("code", &code_));
  }

  void Compute(OpKernelContext*) override { mpi::World::Abort(code_); }

 private:
  int code_;
};

// The world outlives all graphs; this only stands for it.
class CommunicatorResource : public tensorflow::ResourceBase {
 public:
  std::string DebugString() const override { return "Communicator of MPI"; }
};

class MpiCommunicatorOp
    : public tensorflow::ResourceOpKernel<CommunicatorResource> {
 public:
  using ResourceOpKernel::ResourceOpKernel;

 private:
  absl::Status CreateResource(CommunicatorResource** resource) override {
    *resource = new CommunicatorResource;
    return absl::OkStatus();
  }
};

class BarrierOp : public CollectiveKernel {
 public:
  using CollectiveKernel::CollectiveKernel;

 protected:
  absl::Status Prepare(OpKernelContext*, const mpi::World&,
                       mpi::Call* call) override {
    call->header = mpi::MakeHeader(mpi::CallKind::kBarrier, label(), "", 0);
    // To have the headers of all ranks is to know that all are here.
    call->exchange = [](mpi::Collectives&,
                        const std::vector<mpi::CallHeader>&) {
      return Status();
    };
    return absl::OkStatus();
  }
};

REGISTER_KERNEL_BUILDER(Name("EmbedraMpiStart").Device(tensorflow::DEVICE_CPU),
                        MpiStartOp);
REGISTER_KERNEL_BUILDER(Name("EmbedraMpiEnd").Device(tensorflow::DEVICE_CPU),
                        MpiEndOp);
REGISTER_KERNEL_BUILDER(Name("EmbedraMpiAbort").Device(tensorflow::DEVICE_CPU),
                        MpiAbortOp);
REGISTER_KERNEL_BUILDER(
    Name("EmbedraMpiCommunicator").Device(tensorflow::DEVICE_CPU),
    MpiCommunicatorOp);
REGISTER_KERNEL_BUILDER(Name("EmbedraBarrier").Device(tensorflow::DEVICE_CPU),
                        BarrierOp);

}  // namespace
}  // namespace embedra
