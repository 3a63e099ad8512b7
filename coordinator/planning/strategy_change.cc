#include "coordinator/planning/strategy_change.h"

#include "absl/strings/str_cat.h"
#include "common/base/text_table.h"
#include "common/base/units.h"
#include "common/plan/schedule_name.h"

namespace gleaner::coordinator {

std::string describe(const StrategyChange& change) {
  return absl::StrCat("the plan of epoch ", change.epoch, " changes the strategy of ",
                      counted(change.tensors, "tensor"), " of ", format_bytes(static_cast<double>(change.bytes)),
                      " from ", change.from, " to ", change.to, ": ", change.why);
}

std::string describe(const OtherBits& other) {
  return plan::describe_other_bits(plan::name_of(other.bits), other.seconds, other.instead_of_seconds, other.strategy);
}

}  // namespace gleaner::coordinator
