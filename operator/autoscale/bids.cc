#include "operator/autoscale/bids.h"

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>

namespace gleaner::autoscale {
namespace {

// Gains with a smaller relative difference count as equal.
constexpr double kEqual = 1e-9;
constexpr size_t kMachinesCompared = 8;  // number of machines to compare in each group; they are sorted, best first

// Returns the machines to compare, those near the workers first.
std::vector<const Candidate*> compared_machines(const Bidder& bidder, const absl::flat_hash_set<std::string>& taken) {
  std::map<std::optional<uint32_t>, size_t> compared;
  std::vector<const Candidate*> machines;
  for (const Candidate* machine : bidder.machines) {
    if (taken.contains(machine->node)) continue;
    if (compared[bidder.worth->group_of(*machine)]++ < kMachinesCompared) machines.push_back(machine);
  }
  std::ranges::stable_sort(machines, std::ranges::greater(),
                           [&](const Candidate* machine) { return bidder.worth->nearness(*machine); });
  return machines;
}

}  // namespace

std::optional<Bid> best_bid(const Bidder& bidder, const absl::flat_hash_set<std::string>& taken) {
  std::optional<Bid> best;
  double most = 0;
  for (const Candidate* machine : compared_machines(bidder, taken)) {
    const double gain = bidder.worth->gain_seconds(*machine, most * (1 + kEqual));
    if (best.has_value() && gain <= most) continue;
    best = {&bidder, machine, bidder.worth->share(gain)};
    most = gain;
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
