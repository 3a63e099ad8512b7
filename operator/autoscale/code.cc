#include "operator/autoscale/autoscale.h"

namespace gleaner::autoscale {

absl::string_view to_string(Code code) {
  switch (code) {
    case Code::kAsWanted:
      return "AsWanted";
    case Code::kWorthIt:
      return "WorthIt";
    case Code::kBelowMinimum:
      return "BelowMinimum";
    case Code::kAtMaximum:
      return "AtMaximum";
    case Code::kAboveMaximum:
      return "AboveMaximum";
    case Code::kNotWorthIt:
      return "NotWorthIt";
    case Code::kNoMachine:
      return "NoMachine";
    case Code::kOutbid:
      return "Outbid";
    case Code::kGivesWay:
      return "GivesWay";
    case Code::kOwnersNeedIt:
      return "OwnersNeedIt";
    case Code::kBuysNothing:
      return "BuysNothing";
    case Code::kDidNotStart:
      return "DidNotStart";
    case Code::kPausing:
      return "Pausing";
    case Code::kNoMetrics:
      return "NoMetrics";
    case Code::kStaleMetrics:
      return "StaleMetrics";
    case Code::kNotPlanned:
      return "NotPlanned";
    case Code::kStrategyUsesNone:
      return "StrategyUsesNone";
  }
  return "Unknown";
}

}  // namespace gleaner::autoscale
