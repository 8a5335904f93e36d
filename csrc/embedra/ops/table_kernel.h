// Base classes of the kernels: they find the tables, subclasses do the work.

#ifndef EMBEDRA_OPS_TABLE_KERNEL_H_
#define EMBEDRA_OPS_TABLE_KERNEL_H_

#include <vector>

#include "absl/status/status.h"
#include "embedra/core/table.h"
#include "embedra/ops/table_resource.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_mgr.h"

namespace embedra {

// The tables of a list op, in input order. Holds a reference to each.
class TableList {
 public:
  // Finds the tables of the input list `tables`.
  absl::Status Find(tensorflow::OpKernelContext* ctx);

  int size() const { return static_cast<int>(resources_.size()); }
  Table& operator[](int i) const { return resources_[i]->table(); }

 private:
  std::vector<tensorflow::core::RefCountPtr<TableResource>> resources_;
};

// A kernel whose first input is a list of tables. If the op has the attributes
// `dims` or `T`, they must agree with the tables.
class TableListKernel : public tensorflow::OpKernel {
 public:
  explicit TableListKernel(tensorflow::OpKernelConstruction* ctx);
  void Compute(tensorflow::OpKernelContext* ctx) final;

 protected:
  virtual absl::Status Run(tensorflow::OpKernelContext* ctx,
                           const TableList& tables) = 0;

 private:
  std::vector<int64_t> dims_;                            // empty: no attribute
  tensorflow::DataType dtype_ = tensorflow::DT_INVALID;  // invalid: none
};

// A kernel whose first input is one table, with `dim` and `T` treated alike.
class TableKernel : public tensorflow::OpKernel {
 public:
  explicit TableKernel(tensorflow::OpKernelConstruction* ctx);
  void Compute(tensorflow::OpKernelContext* ctx) final;

 protected:
  virtual absl::Status Run(tensorflow::OpKernelContext* ctx, Table& table) = 0;

 private:
  int64_t dim_ = 0;                                      // 0: no attribute
  tensorflow::DataType dtype_ = tensorflow::DT_INVALID;  // invalid: none
};

}  // namespace embedra

#endif  // EMBEDRA_OPS_TABLE_KERNEL_H_
