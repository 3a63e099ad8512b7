// The part of `gleaner plan --topology` that compares strategies and changes of the network (common/strategy/advice.h).
#pragma once

#include <optional>
#include <string>

#include "common/plan/prices.h"
#include "common/strategy/advice.h"

namespace gleaner::cli {

struct PricedAdvice {
  strategy::Advice advice;
  uint32_t workers = 0;
  double compute_seconds = 0;  // a step takes the longer of communication and computation
  std::optional<plan::Prices> prices;
};

// Returns the fields "strategies" and "changes" of a JSON object, without braces.
std::string advice_json(const PricedAdvice& priced);
// Returns tables for people.
std::string advice_text(const PricedAdvice& priced);

}  // namespace gleaner::cli
