// Puts a strategy that fits a network, and that network, into the options of a job. Pure.
#pragma once

#include <memory>
#include <utility>

#include "common/strategy/networked_strategy.h"
#include "coordinator/roster/options.h"

namespace gleaner::coordinator {

inline void take(strategy::NetworkedStrategy settled, Options::Reduction& reduction) {
  reduction.strategy = std::move(settled.strategy);
  reduction.network = std::make_shared<const strategy::JobNetwork>(std::move(settled.network));
}

}  // namespace gleaner::coordinator
