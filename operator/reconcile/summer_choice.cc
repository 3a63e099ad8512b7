#include "operator/reconcile/summer_choice.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "common/fabric/nearness.h"
#include "common/fabric/step_bound.h"

namespace gleaner::reconcile {
namespace {

using placement::Candidate;

// Bounds with a smaller relative difference count as equal.
constexpr double kEqual = 1e-9;

// The number of summers that a job takes.
class Limits {
 public:
  Limits(const api::SummersWanted& wanted, double min_gain) : min_(wanted.min), max_(wanted.max), min_gain_(min_gain) {}

  bool is_full(size_t chosen) const { return chosen >= max_; }
  // Returns whether one more summer is wanted with which the bound falls from `before` to `after`.
  bool takes(size_t chosen, double before, double after) const {
    return chosen < min_ || before - after >= min_gain_ * before;
  }

 private:
  const uint32_t min_, max_;
  const double min_gain_;
};

std::vector<Candidate> choose_in_order(std::vector<Candidate> candidates, plan::Fleet fleet, const Limits& limits) {
  double before = plan::bound_seconds(fleet, 1);
  std::vector<Candidate> chosen;
  for (Candidate& candidate : candidates) {
    if (limits.is_full(chosen.size())) break;
    fleet.summer_bits_per_second.push_back(candidate.bits_per_second);
    const double after = plan::bound_seconds(fleet, 1);
    if (!limits.takes(chosen.size(), before, after)) break;
    before = after;
    chosen.push_back(std::move(candidate));
  }
  return chosen;
}

// The candidates by group, of which only the fastest of each group have to be compared.
class CandidateGroups {
 public:
  CandidateGroups(const fabric::Fabric& fabric, const std::vector<std::string>& worker_nodes,
                  std::vector<Candidate> candidates) {
    const fabric::Nearness workers(fabric, worker_nodes);
    for (size_t i = candidates.size(); i-- > 0;) {
      Candidate& candidate = candidates[i];
      const uint32_t nearness = workers.of(candidate.node);
      groups_[fabric.group_of(candidate.node)].push_back({std::move(candidate), nearness, i});
    }
    for (auto& [group, options] : groups_) {
      std::ranges::stable_sort(options, {}, [](const Option& option) { return option.candidate.bits_per_second; });
    }
  }

  // Removes the candidate with which the bound is least, and sets `seconds` to that bound. None: no candidate is left.
  std::optional<Candidate> take_best(const fabric::StepBound& bound, double& seconds) {
    std::vector<std::vector<Option>*> groups;
    for (auto& [group, options] : groups_) {
      if (!options.empty()) groups.push_back(&options);
    }
    seconds = std::numeric_limits<double>::infinity();
    // The fastest come first, so that one step of a bisection shows of most others that they are worth less.
    sort(groups, [](const Option& option) { return -option.candidate.bits_per_second; });
    for (const std::vector<Option>* const options : groups) {
      seconds = std::min(seconds, seconds_with(options->back(), bound, seconds * (1 - kEqual)));
    }
    sort(groups, [](const Option& option) { return -static_cast<double>(option.nearness); });
    for (std::vector<Option>* const options : groups) {
      if (seconds_with(options->back(), bound, seconds * (1 + kEqual)) > seconds * (1 + kEqual)) continue;
      Candidate taken = std::move(options->back().candidate);
      options->pop_back();
      return taken;
    }
    return std::nullopt;
  }

 private:
  struct Option {
    Candidate candidate;
    uint32_t nearness = 0;
    size_t place = 0;  // by score
  };

  // Sorts groups by a key of their best candidates, and then by score.
  template <typename Key>
  static void sort(std::vector<std::vector<Option>*>& groups, const Key& key) {
    std::ranges::sort(groups, {}, [&](const std::vector<Option>* options) {
      return std::pair(key(options->back()), options->back().place);
    });
  }

  static double seconds_with(const Option& option, const fabric::StepBound& bound, double most) {
    return bound.with_summer(option.candidate.node, option.candidate.bits_per_second, most);
  }

  std::map<std::optional<uint32_t>, std::vector<Option>> groups_;  // the best candidate of each is the last
};

std::vector<Candidate> choose_by_uplinks(CandidateGroups candidates, fabric::StepBound bound, const Limits& limits) {
  double before = bound.seconds_per_byte();
  std::vector<Candidate> chosen;
  while (!limits.is_full(chosen.size())) {
    double after = 0;
    std::optional<Candidate> next = candidates.take_best(bound, after);
    if (!next.has_value() || !limits.takes(chosen.size(), before, after)) break;
    bound.add_summer(next->node, next->bits_per_second);
    before = after;
    chosen.push_back(*std::move(next));
  }
  return chosen;
}

}  // namespace

void put_near_first(const fabric::Fabric& fabric, const std::vector<std::string>& worker_nodes,
                    std::vector<Candidate>& candidates) {
  if (fabric.groups().empty()) return;
  const fabric::Nearness workers(fabric, worker_nodes);
  std::map<double, std::vector<size_t>> places;
  for (size_t i = 0; i < candidates.size(); ++i) places[candidates[i].bits_per_second].push_back(i);
  const std::vector<Candidate> before = candidates;
  for (const auto& [bits_per_second, of_bandwidth] : places) {
    std::vector<size_t> sorted = of_bandwidth;
    std::ranges::stable_sort(sorted, std::ranges::greater(), [&](size_t i) { return workers.of(before[i].node); });
    for (size_t i = 0; i < sorted.size(); ++i) candidates[of_bandwidth[i]] = before[sorted[i]];
  }
}

std::vector<Candidate> choose_summers(const api::TrainingJob& job, const fabric::Fabric& fabric,
                                      const WorkerMachines& workers, std::vector<Candidate> candidates,
                                      double min_gain) {
  const api::SummersWanted& wanted = job.communication.summers;
  std::vector<std::string> nodes = workers.nodes;
  for (Candidate& candidate : candidates) {
    if (wanted.bits_per_second > 0) {
      candidate.bits_per_second = std::min(candidate.bits_per_second, wanted.bits_per_second);
    }
    nodes.push_back(candidate.node);
  }
  std::erase_if(candidates, [](const Candidate& each) { return each.bits_per_second < plan::kMinBitsPerSecond; });
  fabric::StepBound bound(fabric, workers.fleet.push_ratio);
  for (uint32_t i = 0; i < workers.fleet.n(); ++i) {
    bound.add_worker(workers.nodes[i], workers.fleet.worker_bits_per_second[i]);
  }
  const Limits limits(wanted, min_gain);
  if (has_known_uplinks(fabric, nodes)) {
    return choose_by_uplinks(CandidateGroups(fabric, workers.nodes, std::move(candidates)), std::move(bound), limits);
  }
  put_near_first(fabric, workers.nodes, candidates);
  return choose_in_order(std::move(candidates), workers.fleet, limits);
}

}  // namespace gleaner::reconcile
