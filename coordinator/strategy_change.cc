#include "coordinator/strategy_change.h"

#include "absl/strings/str_cat.h"
#include "common/base/text_table.h"
#include "common/base/units.h"

namespace gleaner::coordinator {

std::string describe(const StrategyChange& change) {
  return absl::StrCat("the plan of epoch ", change.epoch, " changes the strategy of ",
                      counted(change.tensors, "tensor"), " of ", format_bytes(static_cast<double>(change.bytes)),
                      " from ", change.from, " to ", change.to, ": ", change.why);
}

}  // namespace gleaner::coordinator
