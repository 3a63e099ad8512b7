#include "common/strategy/advice.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/plan/partitioner.h"
#include "common/plan/schedule_name.h"
#include "common/plan/uplinks.h"
#include "common/strategy/candidates.h"
#include "common/strategy/step.h"
#include "common/strategy/strategy.h"
#include "common/topology/network.h"

namespace gleaner::strategy {
namespace {

using topology::Topology;

constexpr uint32_t kMostNumbers = 16;  // of summers that are compared
constexpr double kLeastGainOfChange = 0.01;

// The tensors of a step, as plans of these members cut them.
class Step {
 public:
  Step(std::span<const plan::Tensor> tensors, uint64_t partition_bytes) : asked_(partition_bytes) {
    for (const plan::Tensor& tensor : tensors)
      tensors_.push_back({.bytes = tensor.bytes(), .types = plan::encoding_of(tensor)});
  }

  // Returns the step's time by one candidate.
  double seconds(const Candidate& candidate, const plan::Fleet& fleet) const {
    return seconds(std::span(&candidate, 1), std::vector<size_t>(tensors_.size(), 0), fleet);
  }

  // Returns the step's time if the fastest candidate sums each tensor.
  double seconds_of_best(std::span<const Candidate> candidates, const plan::Fleet& fleet) const {
    std::vector<size_t> fastest_of;
    for (const NewTensor& tensor : tensors_) {
      fastest_of.push_back(fastest(seconds_of_new(candidates, planned(tensor, fleet))));
    }
    return seconds(candidates, fastest_of, fleet);
  }

  bool has_several() const { return tensors_.size() > 1; }

 private:
  NewTensor planned(NewTensor tensor, const plan::Fleet& fleet) const {
    tensor.by_default = plan::default_partition_bytes(fleet, tensor.bytes);
    tensor.asked = asked_;
    return tensor;
  }

  double seconds(std::span<const Candidate> candidates, const std::vector<size_t>& strategies,
                 const plan::Fleet& fleet) const {
    // One tensor waits for its own last partition; with several, the next one's follow.
    if (!has_several()) return seconds_of_new(candidates, planned(tensors_.front(), fleet))[strategies.front()];
    std::vector<TensorGroup> groups;
    for (size_t i = 0; i < tensors_.size(); ++i) {
      const NewTensor tensor = planned(tensors_[i], fleet);
      groups.push_back({.bytes = static_cast<double>(tensor.bytes),
                        .partition_bytes = static_cast<double>(partition_bytes_of(candidates[strategies[i]], tensor)),
                        .per_step = 1,
                        .strategy = strategies[i],
                        .types = tensor.types});
    }
    return step_seconds(candidates, groups, strategies);
  }

  std::vector<NewTensor> tensors_;
  uint64_t asked_;
};

absl::StatusOr<std::vector<Way>> ways(const topology::Network& network, uint32_t workers, uint32_t summers,
                                      const Step& step) {
  GLN_ASSIGN_OR_RETURN(const std::vector<Candidate> all, candidates(network, workers, summers));
  GLN_ASSIGN_OR_RETURN(const plan::Fleet fleet, plan::fleet_of(network.topology, workers, summers));
  std::vector<Way> found = {{name_of(all.front()), summers, step.seconds(all.front(), fleet)}};
  for (size_t i = 1; i < all.size(); ++i) found.push_back({name_of(all[i]), 0, step.seconds(all[i], fleet)});
  if (step.has_several()) found.push_back({kAuto, summers, step.seconds_of_best(all, fleet)});
  return found;
}

// Returns the time by summers alone.
absl::StatusOr<Way> by_summers(const topology::Network& network, uint32_t workers, uint32_t summers, const Step& step) {
  GLN_ASSIGN_OR_RETURN(const Candidate candidate, candidate_of_summers(network, workers, summers));
  GLN_ASSIGN_OR_RETURN(const plan::Fleet fleet, plan::fleet_of(network.topology, workers, summers));
  return Way{name_of(candidate), summers, step.seconds(candidate, fleet)};
}

const Way& fastest_of(const std::vector<Way>& all) { return *std::ranges::min_element(all, {}, &Way::seconds); }

bool joins_switches(const Topology& topology, const topology::Link& link) {
  return !topology.is_host(link.a) && !topology.is_host(link.b);
}

// Returns the topology with links twice as fast; nothing: there are none.
absl::StatusOr<std::optional<Topology>> with_faster_links(const Topology& topology, bool of_hosts) {
  std::vector<topology::Link> links = topology.links();
  bool any = false;
  for (topology::Link& link : links) {
    if (joins_switches(topology, link) == of_hosts) continue;
    link.bits_per_second *= 2;
    link.back_bits_per_second *= 2;
    any = true;
  }
  if (!any) return std::nullopt;
  return Topology::make(topology.hosts(), topology.switches(), std::move(links));
}

// Returns the topology with a host for one more summer; nothing: no host has one link to a switch.
absl::StatusOr<std::optional<Topology>> with_one_more(const Topology& topology, uint32_t members) {
  if (topology.host_count() > members) return topology;
  std::map<uint32_t, uint32_t> members_at;  // by switch
  for (uint32_t host = 0; host < members; ++host) {
    if (const auto at = topology.only_switch(host)) ++members_at[at->node];
  }
  if (members_at.empty()) return std::nullopt;
  const uint32_t at = std::ranges::min_element(members_at, {}, [](const auto& entry) { return entry.second; })->first;
  std::vector<topology::Host> hosts = topology.hosts();
  std::vector<topology::Link> links = topology.links();
  const uint32_t added = topology.host_count();
  std::optional<topology::Link> own;
  for (topology::Link& link : links) {
    for (uint32_t* const end : {&link.a, &link.b}) *end += *end >= added ? 1 : 0;
    const bool is_of_host = (link.a < added && link.b == at + 1) || (link.b < added && link.a == at + 1);
    if (!is_of_host) continue;
    own = link;
    (own->a < added ? own->a : own->b) = added;
  }
  links.push_back(*own);
  // Its processor is taken to be no faster than those that are there.
  const double overhead = std::ranges::max_element(hosts, {}, &topology::Host::overhead_seconds)->overhead_seconds;
  hosts.push_back({absl::StrCat("one more summer ", added), {}, overhead});
  return Topology::make(std::move(hosts), topology.switches(), std::move(links));
}

}  // namespace

std::optional<double> Advice::seconds_of(const std::string& strategy, uint32_t summers) const {
  for (const Way& way : ways) {
    if (way.strategy == strategy && way.summers == summers) return way.seconds;
  }
  return std::nullopt;
}

absl::StatusOr<Advice> advise(const Topology& topology, uint32_t workers, uint32_t summers,
                              std::span<const plan::Tensor> tensors, uint64_t partition_bytes) {
  const Step step(tensors, partition_bytes);
  Advice advice;
  const topology::Network network = topology::make_network(topology);
  GLN_ASSIGN_OR_RETURN(advice.ways, ways(network, workers, summers, step));
  const uint32_t apart = summers / kMostNumbers + 1;
  for (uint32_t fewer = 0; fewer < summers; fewer += apart) {
    GLN_ASSIGN_OR_RETURN(Way way, by_summers(network, workers, fewer, step));
    advice.ways.push_back(std::move(way));
  }
  // Times that differ by less than a thousandth or so count as equal. Then the fewest summers are best.
  const auto order = [](const Way& way) { return std::tuple(std::lround(1000 * std::log(way.seconds)), way.summers); };
  std::ranges::stable_sort(advice.ways, {}, order);
  const auto consider = [&](Change::Kind kind, const std::optional<Topology>& changed, uint32_t k) -> absl::Status {
    if (!changed.has_value()) return absl::OkStatus();
    GLN_ASSIGN_OR_RETURN(const std::vector<Way> all, ways(topology::make_network(*changed), workers, k, step));
    const Way& best = fastest_of(all);
    if (best.seconds < advice.ways.front().seconds * (1 - kLeastGainOfChange)) advice.changes.push_back({kind, best});
    return absl::OkStatus();
  };
  GLN_ASSIGN_OR_RETURN(const auto more, with_one_more(topology, workers + summers));
  GLN_RETURN_IF_ERROR(consider(Change::Kind::kSummer, more, summers + 1));
  GLN_ASSIGN_OR_RETURN(const auto uplinks, with_faster_links(topology, false));
  GLN_RETURN_IF_ERROR(consider(Change::Kind::kUplinks, uplinks, summers));
  GLN_ASSIGN_OR_RETURN(const auto links, with_faster_links(topology, true));
  GLN_RETURN_IF_ERROR(consider(Change::Kind::kHostLinks, links, summers));
  std::ranges::stable_sort(advice.changes, {}, [](const Change& change) { return change.fastest.seconds; });
  return advice;
}

}  // namespace gleaner::strategy
