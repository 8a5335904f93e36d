#include "embedra/ops/table_resource.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "embedra/ops/row_dtype.h"
#include "embedra/ops/status_convert.h"

namespace embedra {

absl::Status ParseInitializer(absl::string_view name,
                              InitializerSpec::Kind* kind) {
  if (name == "constant") {
    *kind = InitializerSpec::Kind::kConstant;
  } else if (name == "uniform") {
    *kind = InitializerSpec::Kind::kUniform;
  } else if (name == "normal") {
    *kind = InitializerSpec::Kind::kNormal;
  } else if (name == "truncated_normal") {
    *kind = InitializerSpec::Kind::kTruncatedNormal;
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("The initializer must be one of constant, uniform, "
                     "normal, truncated_normal. Received: '",
                     name, "'."));
  }
  return absl::OkStatus();
}

absl::Status ParseEvictionOrder(absl::string_view name, EvictionOrder* order) {
  if (name == "recency") {
    *order = EvictionOrder::kRecency;
  } else if (name == "frequency") {
    *order = EvictionOrder::kFrequency;
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("The order of eviction must be recency or frequency. "
                     "Received: '",
                     name, "'."));
  }
  return absl::OkStatus();
}

absl::Status TableResource::Create(const TableOptions& options,
                                   TableResource** resource) {
  std::unique_ptr<Table> table;
  TF_RETURN_IF_ERROR(ToAbsl(Table::Create(options, &table)));
  *resource = new TableResource(std::move(table));
  return absl::OkStatus();
}

absl::Status TableResource::Close() {
  closed_ = true;
  return ToAbsl(table_->Clear());
}

absl::Status TableResource::CheckOpen() const {
  if (!closed_) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "Table '", table_->options().name,
      "' was deleted: the layer or embedra.Table that owned it is gone. Keep a "
      "reference to the owner for as long as functions made from it are "
      "used."));
}

std::string TableResource::DebugString() const {
  return absl::StrCat("Embedra table '", table_->options().name, "' of ",
                      table_->size(), " rows of width ", table_->dim());
}

int64_t TableResource::MemoryUsed() const { return table_->statistics().bytes; }

absl::Status ReadTableOptions(tensorflow::OpKernelConstruction* ctx,
                              TableOptions* options) {
  tensorflow::DataType dtype;
  std::string initializer, eviction;
  int64_t seed;
  options->initializer.parameters.clear();  // GetAttr appends
  TF_RETURN_IF_ERROR(ctx->GetAttr("table_name", &options->name));
  TF_RETURN_IF_ERROR(ctx->GetAttr("dim", &options->dim));
  TF_RETURN_IF_ERROR(ctx->GetAttr("dtype", &dtype));
  TF_RETURN_IF_ERROR(ctx->GetAttr("initializer", &initializer));
  TF_RETURN_IF_ERROR(
      ctx->GetAttr("initializer_parameters", &options->initializer.parameters));
  TF_RETURN_IF_ERROR(ctx->GetAttr("seed", &seed));
  TF_RETURN_IF_ERROR(
      ctx->GetAttr("initial_capacity", &options->initial_capacity));
  TF_RETURN_IF_ERROR(ctx->GetAttr("max_capacity", &options->max_capacity));
  TF_RETURN_IF_ERROR(ctx->GetAttr("eviction", &eviction));
  TF_RETURN_IF_ERROR(ParseEvictionOrder(eviction, &options->eviction));
  TF_RETURN_IF_ERROR(ToRowType(dtype, &options->row_type));
  TF_RETURN_IF_ERROR(ParseInitializer(initializer, &options->initializer.kind));
  options->seed = static_cast<uint64_t>(seed);
  return ToAbsl(options->Validate());
}

}  // namespace embedra
