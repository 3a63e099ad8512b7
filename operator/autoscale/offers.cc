#include "operator/autoscale/offers.h"

#include <tuple>

namespace gleaner::autoscale {
namespace {

constexpr size_t kLooked = 8;  // candidates are sorted: what comes later is no better

}  // namespace

std::optional<Offer> best_offer(const Bidder& bidder, const absl::flat_hash_set<std::string>& taken) {
  std::optional<Offer> best;
  size_t looked = 0;
  for (const Candidate* machine : bidder.machines) {
    if (taken.contains(machine->node)) continue;
    const double share = bidder.worth->share(bidder.worth->gain_seconds(machine->bits_per_second));
    if (!best.has_value() || share > best->share) best = {&bidder, machine, share};
    if (++looked == kLooked) break;
  }
  return best;
}

bool goes_before(const Offer& one, const Offer& other) {
  const auto rank = [](const Offer& offer) {
    return std::make_tuple(-int64_t{offer.bidder->job->priority}, !offer.bidder->below_minimum(), -offer.share,
                           offer.bidder->summers, absl::string_view(offer.bidder->job->key));
  };
  return rank(one) < rank(other);
}

}  // namespace gleaner::autoscale
