// Which bandwidth each way of summing needs to hide its communication behind the computation of a step: parameter
// servers by their placement (common/plan/placements.h), and the strategies of candidates.h on one switch. Latency does
// not count. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/plan/model.h"
#include "common/plan/prices.h"

namespace gleaner::strategy {

// The account of one way of summing, for the fleet it was asked for.
struct Hiding {
  std::string name;      // "CC", "summers", "ring", ...
  uint32_t summers = 0;  // machines besides the workers
  // The bandwidths that hide the communication, each way: of a worker's link, and of the busiest machine that sums.
  double worker_bits_per_second = 0;
  double server_bits_per_second = 0;
  double communication_seconds = 0;  // with the fleet's bandwidths
  double step_seconds = 0;           // the longer of communication and computation
  bool hidden = false;               // communication takes no longer than computation
  // The price of all machines, of a step, and the steps per second that 1000 $ buy. None: no prices.
  std::optional<double> total_price, step_price, throughput_per_1000;
};

// Returns the account of the four placements, then of the strategies. NCS has as many servers as the fleet has summers,
// or as workers if it has none; servers that are machines of their own have the bandwidth of the slowest summer, or of
// the slowest worker if there is none. `bytes`: of a step's gradients. InvalidArgument: as plan::validate(fleet).
absl::StatusOr<std::vector<Hiding>> hide(const plan::Fleet& fleet, double bytes, double compute_seconds,
                                         const std::optional<plan::Prices>& prices);

}  // namespace gleaner::strategy
