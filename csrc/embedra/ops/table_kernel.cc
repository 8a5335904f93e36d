#include "embedra/ops/table_kernel.h"

#include <utility>

#include "embedra/ops/checks.h"

namespace embedra {

using tensorflow::OpInputList;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;

absl::Status TableList::Find(OpKernelContext* ctx) {
  OpInputList handles;
  TF_RETURN_IF_ERROR(ctx->input_list("tables", &handles));
  resources_.resize(handles.size());
  for (int i = 0; i < handles.size(); ++i) {
    TF_RETURN_IF_ERROR(tensorflow::LookupResource(
        ctx, handles[i].scalar<tensorflow::ResourceHandle>()(),
        &resources_[i]));
    TF_RETURN_IF_ERROR(resources_[i]->CheckOpen());
  }
  return absl::OkStatus();
}

TableListKernel::TableListKernel(OpKernelConstruction* ctx) : OpKernel(ctx) {
  if (ctx->HasAttr("dims")) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("dims", &dims_));
    int64_t num_tables;
    OP_REQUIRES_OK(ctx, ctx->GetAttr("N", &num_tables));
    OP_REQUIRES_OK(ctx,
                   CheckListLength("dims", static_cast<int64_t>(dims_.size()),
                                   num_tables));
  }
  if (ctx->HasAttr("T")) OP_REQUIRES_OK(ctx, ctx->GetAttr("T", &dtype_));
}

void TableListKernel::Compute(OpKernelContext* ctx) {
  TableList tables;
  OP_REQUIRES_OK(ctx, tables.Find(ctx));
  for (int i = 0; i < tables.size(); ++i) {
    const int64_t dim = dims_.empty() ? 0 : dims_[i];
    OP_REQUIRES_OK(ctx, CheckTableMatches(tables[i], dim, dtype_));
  }
  OP_REQUIRES_OK(ctx, Run(ctx, tables));
}

TableKernel::TableKernel(OpKernelConstruction* ctx) : OpKernel(ctx) {
  if (ctx->HasAttr("dim")) OP_REQUIRES_OK(ctx, ctx->GetAttr("dim", &dim_));
  if (ctx->HasAttr("T")) OP_REQUIRES_OK(ctx, ctx->GetAttr("T", &dtype_));
}

void TableKernel::Compute(OpKernelContext* ctx) {
  tensorflow::core::RefCountPtr<TableResource> resource;
  OP_REQUIRES_OK(ctx, tensorflow::LookupResource(
                          ctx, tensorflow::HandleFromInput(ctx, 0), &resource));
  OP_REQUIRES_OK(ctx, resource->CheckOpen());
  OP_REQUIRES_OK(ctx, CheckTableMatches(resource->table(), dim_, dtype_));
  OP_REQUIRES_OK(ctx, Run(ctx, resource->table()));
}

}  // namespace embedra
