// CollectiveKernel: base class of the ops that exchange data between ranks.
//
// Order. All ranks must run the same collectives in the same order. So every
// such op takes the communicator as a resource that it changes. In a
// `tf.function` TensorFlow runs ops that share a resource in the order in which
// they were traced, also across nested functions, loops and gradients; eager
// ops run as they are called; for TF1 graphs the Python wrappers add control
// dependencies. Kernels hand the exchange over to the one communication thread
// of the process and wait without holding a thread.
//
// Errors. A rank whose inputs are wrong takes part all the same, by saying so;
// all ranks fail then. See embedra/mpi/call.h.

#ifndef EMBEDRA_OPS_COMMUNICATION_KERNEL_H_
#define EMBEDRA_OPS_COMMUNICATION_KERNEL_H_

#include <string>

#include "absl/status/status.h"
#include "embedra/mpi/world.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace embedra {

class CollectiveKernel : public tensorflow::AsyncOpKernel {
 public:
  explicit CollectiveKernel(tensorflow::OpKernelConstruction* ctx);
  void ComputeAsync(tensorflow::OpKernelContext* ctx, DoneCallback done) final;

 protected:
  // What calls are named by in messages.
  const std::string& label() const { return label_; }

  // Fills header and exchange. Also after an error it must have set the header.
  virtual absl::Status Prepare(tensorflow::OpKernelContext* ctx,
                               const mpi::World& world, mpi::Call* call) = 0;

 private:
  std::string label_;
};

// The world, or an error that says that MPI is not running.
absl::Status GetWorld(mpi::World** world);

// Row-major rows of a tensor of rank 1 or more: bytes of one, and how many.
int64_t RowBytes(const tensorflow::Tensor& tensor);

// E.g. "[3,4]"; with `any_rows` "[?,4]".
std::string ShapeText(const tensorflow::Tensor& tensor, bool any_rows);

// "float [3,4] [5]", of a list of tensors of one dtype.
std::string LayoutText(const tensorflow::OpInputList& tensors, bool any_rows);

// Translates an error of absl to one of the core.
Status ToCore(const absl::Status& status);

}  // namespace embedra

#endif  // EMBEDRA_OPS_COMMUNICATION_KERNEL_H_
