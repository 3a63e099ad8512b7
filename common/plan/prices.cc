#include "common/plan/prices.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace gleaner::plan {

absl::Status validate(const Prices& prices) {
  const struct {
    absl::string_view name;
    double value;
  } parts[] = {{"worker", prices.worker},
               {"summer", prices.summer},
               {"nic", prices.nic},
               {"switch_port", prices.switch_port},
               {"cable", prices.cable}};
  for (const auto& [name, value] : parts) {
    if (std::isfinite(value) && value >= 0) continue;
    return absl::InvalidArgumentError(absl::StrCat("the price of a ", name, " is ", value, "; give 0 or more"));
  }
  if (prices.summer_ports == 0) return absl::InvalidArgumentError("summer_ports is 0; a summer needs a port");
  if (!(prices.uplinks >= 0 && prices.uplinks <= 1)) {
    return absl::InvalidArgumentError(absl::StrCat("uplinks is ", prices.uplinks, "; give 0 to 1"));
  }
  if (!(std::isfinite(prices.hours) && prices.hours > 0)) {
    return absl::InvalidArgumentError(absl::StrCat("hours is ", prices.hours, "; give more than 0"));
  }
  if (prices.worker + prices.port() > 0) return absl::OkStatus();
  return absl::InvalidArgumentError("a worker and its network cost nothing; give at least one price");
}

}  // namespace gleaner::plan
