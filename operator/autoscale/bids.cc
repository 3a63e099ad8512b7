#include "operator/autoscale/bids.h"

#include <tuple>

namespace gleaner::autoscale {
namespace {

constexpr size_t kMachinesCompared = 8;  // number of machines to compare; they are sorted, best first

}  // namespace

std::optional<Bid> best_bid(const Bidder& bidder, const absl::flat_hash_set<std::string>& taken) {
  std::optional<Bid> best;
  size_t compared = 0;
  for (const Candidate* machine : bidder.machines) {
    if (taken.contains(machine->node)) continue;
    const double share = bidder.worth->share(bidder.worth->gain_seconds(machine->bits_per_second));
    if (!best.has_value() || share > best->share) best = {&bidder, machine, share};
    if (++compared == kMachinesCompared) break;
  }
  return best;
}

bool goes_before(const Bid& one, const Bid& other) {
  const auto rank = [](const Bid& bid) {
    return std::make_tuple(-int64_t{bid.bidder->job->priority}, !bid.bidder->below_minimum(), -bid.share,
                           bid.bidder->summers, absl::string_view(bid.bidder->job->key));
  };
  return rank(one) < rank(other);
}

}  // namespace gleaner::autoscale
