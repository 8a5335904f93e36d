#include "embedra/ops/communication_kernel.h"

#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "embedra/ops/status_convert.h"

namespace embedra {

CollectiveKernel::CollectiveKernel(tensorflow::OpKernelConstruction* ctx)
    : AsyncOpKernel(ctx) {
  OP_REQUIRES_OK(ctx, ctx->GetAttr("label", &label_));
}

void CollectiveKernel::ComputeAsync(tensorflow::OpKernelContext* ctx,
                                    DoneCallback done) {
  mpi::World* world;
  OP_REQUIRES_OK_ASYNC(ctx, GetWorld(&world), done);
  mpi::Call call;
  call.problem = Prepare(ctx, *world, &call).message();
  call.done = [ctx, done = std::move(done)](Status status) {
    if (!status.ok()) ctx->SetStatus(ToAbsl(status));
    // What follows may take long, or wait for another collective: it must not
    // run on the communication thread.
    if (ctx->runner() != nullptr) {
      (*ctx->runner())(done);
    } else {
      done();
    }
  };
  world->Submit(std::move(call));
}

absl::Status GetWorld(mpi::World** world) {
  *world = mpi::World::Get();
  if (*world != nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "MPI is not running in this process: it was not started, or has ended. "
      "embedra.distribute.communicator() starts it.");
}

int64_t RowBytes(const tensorflow::Tensor& tensor) {
  int64_t bytes = tensorflow::DataTypeSize(tensor.dtype());
  for (int i = 1; i < tensor.dims(); ++i) bytes *= tensor.dim_size(i);
  return bytes;
}

std::string ShapeText(const tensorflow::Tensor& tensor, bool any_rows) {
  std::string text = "[";
  for (int i = 0; i < tensor.dims(); ++i) {
    if (i > 0) text += ",";
    if (i == 0 && any_rows) {
      text += "?";
    } else {
      absl::StrAppend(&text, tensor.dim_size(i));
    }
  }
  return text + "]";
}

std::string LayoutText(const tensorflow::OpInputList& tensors, bool any_rows) {
  std::string text;
  for (int i = 0; i < tensors.size(); ++i) {
    if (i == 0) text = tensorflow::DataTypeString(tensors[i].dtype());
    absl::StrAppend(&text, " ", ShapeText(tensors[i], any_rows));
  }
  return text;
}

Status ToCore(const absl::Status& status) {
  if (status.ok()) return Status();
  return Status(status.code() == absl::StatusCode::kResourceExhausted
                    ? StatusCode::kResourceExhausted
                    : StatusCode::kInternal,
                std::string(status.message()));
}

}  // namespace embedra
