// TableResource: a core Table as TensorFlow's resource managers hold it.

#ifndef EMBEDRA_OPS_TABLE_RESOURCE_H_
#define EMBEDRA_OPS_TABLE_RESOURCE_H_

#include <atomic>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "embedra/core/table.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_base.h"

namespace embedra {

class TableResource : public tensorflow::ResourceBase {
 public:
  // Makes a table. The caller owns one reference to `*resource`.
  static absl::Status Create(const TableOptions& options,
                             TableResource** resource);

  Table& table() { return *table_; }

  // Gives the memory back although handles remain, as the functions that were
  // traced over a table may hold one for ever. From then on it is an error to
  // use the table.
  absl::Status Close();
  // Returns an error if the table is closed.
  absl::Status CheckOpen() const;

  std::string DebugString() const override;
  int64_t MemoryUsed() const override;

 private:
  explicit TableResource(std::unique_ptr<Table> table)
      : table_(std::move(table)) {}

  std::unique_ptr<Table> table_;
  std::atomic<bool> closed_{false};
};

// The initializer of that name, the reverse of NameOf; see the op definitions
// in handle_ops.cc.
absl::Status ParseInitializer(absl::string_view name,
                              InitializerSpec::Kind* kind);

// The order of that name: recency or frequency.
absl::Status ParseEvictionOrder(absl::string_view name, EvictionOrder* order);

// Reads the attributes that the two handle ops share.
absl::Status ReadTableOptions(tensorflow::OpKernelConstruction* ctx,
                              TableOptions* options);

}  // namespace embedra

#endif  // EMBEDRA_OPS_TABLE_RESOURCE_H_
