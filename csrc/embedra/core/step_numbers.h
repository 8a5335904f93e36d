// From a RowOptimizer, as users set it, to what the kernels compute with.

#ifndef EMBEDRA_CORE_STEP_NUMBERS_H_
#define EMBEDRA_CORE_STEP_NUMBERS_H_

#include <string>

#include "embedra/core/record_store.h"
#include "embedra/core/row_kernels.h"
#include "embedra/core/row_optimizer.h"
#include "embedra/core/status.h"

namespace embedra::internal {

// Refuses numbers with which no step can be made. `table` is for the message.
Status ValidateOptimizer(const RowOptimizer& optimizer,
                         const std::string& table);

StepRule RuleOf(const RowOptimizer& optimizer);

// PRECONDITION: the slots of `layout` are those of SlotsOf(optimizer, dim), in
// that order.
StepNumbers NumbersOf(const RowOptimizer& optimizer,
                      const RecordLayout& layout);

}  // namespace embedra::internal

#endif  // EMBEDRA_CORE_STEP_NUMBERS_H_
