#include "common/placement/placement.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/units.h"
#include "common/placement/node_labels.h"

namespace gleaner::placement {
namespace {

constexpr double kBandwidthWeight = 60, kCpuWeight = 25, kAloneWeight = 15;
// For a summer without a limit, this much spare bandwidth is worth half of kBandwidthWeight.
constexpr double kHalfWeightBandwidth = 25e9;
// More cores than this hardly help one summer.
constexpr double kEnoughCpus = 4;
constexpr char kNoReport[] = "node(s) without a report of an agent";
// Measured values may exceed the nominal ones slightly.
constexpr double kTolerance = 1.001;

bool is_amount(double value) { return std::isfinite(value) && value >= 0; }

Refusal contradiction(absl::string_view how) {
  return {"node(s) whose profile contradicts itself", absl::StrCat("its profile contradicts itself: ", how)};
}

// Returns the reason for which the agent's report is not from now.
Refusal time_problem(const api::NodeProfileStatus& profile, absl::Time now) {
  const absl::Duration age = now - profile.observed_time;
  if (profile.observed_time == absl::InfinitePast()) return {kNoReport, "its agent has not reported yet"};
  if (age > kProfileLife) {
    return {"node(s) whose profile is old: are their agents running?",
            absl::StrCat("its profile is ", absl::ToInt64Seconds(age), " s old: is its agent running?")};
  }
  if (age < -kProfileLife) {
    return {"node(s) whose agent's clock is ahead: set it right",
            absl::StrCat("its agent's clock is ", absl::ToInt64Seconds(-age), " s ahead: set it right")};
  }
  return {};
}

// Returns the reason for which the profile can't be used.
Refusal profile_problem(const api::NodeProfileStatus& profile, absl::Time now) {
  if (Refusal found = time_problem(profile, now); !found.reason.empty()) return found;
  if (const api::Condition* ready = api::find_condition(profile.conditions, "Ready"); ready && !ready->status) {
    return {"node(s) whose agent is not ready", absl::StrCat("its agent is not ready: ", ready->message)};
  }
  if (profile.speed_source == api::SpeedSource::kUnknown || profile.bits_per_second == 0) {
    const std::string label = absl::StrCat(api::kNodeBandwidthLabel, "=25Gbit");
    return {absl::StrCat("node(s) whose network's speed is not known: label them ", label),
            absl::StrCat("the speed of its network is not known: label the node, ", label)};
  }
  if (!is_amount(profile.bits_per_second) || profile.bits_per_second > kFastestLink) {
    return {"node(s) whose profile claims a network speed that no link has",
            "its profile claims a network speed that no link has"};
  }
  const api::Spare& spare = profile.spare;
  if (!is_amount(spare.bits_per_second) || spare.bits_per_second > profile.bits_per_second * kTolerance) {
    return contradiction("more bandwidth to spare than its network has");
  }
  if (!is_amount(spare.cpus) || !is_amount(profile.cpus) || spare.cpus > profile.cpus * kTolerance) {
    return contradiction("more CPU to spare than the machine has");
  }
  if (spare.memory_bytes > profile.memory_bytes) return contradiction("more memory to spare than the machine has");
  if (!is_amount(profile.used_bits_per_second)) return contradiction("negative use of its network");
  return {};
}

// Returns the reason for which no summer of this job may run on the machine, independent of its spare resources.
Refusal exclusion(const Machine& machine, const SummerRequest& request, absl::Time now) {
  if (!machine.schedulable) return {"node(s) that are not ready, or cordoned", "not ready, or cordoned"};
  if (request.worker_nodes.contains(machine.name)) {
    return {"node(s) with a worker of this job, whose link a summer would share",
            "a worker of this job runs on it, and a summer would share the worker's link"};
  }
  if (request.summer_nodes.contains(machine.name)) {
    return {"node(s) with a summer of this job", "a summer of this job runs on it already"};
  }
  if (machine.profile == nullptr) return {kNoReport, "no agent has reported the machine"};
  return profile_problem(machine.profile->status, now);
}

double spare_cpus(const Machine& machine) {
  return machine.profile->status.spare.cpus - machine.commitment.summer_cpus;
}

double spare_bits_per_second(const Machine& machine, const SummerRequest& request) {
  const double spare =
      std::max(0.0, machine.profile->status.spare.bits_per_second - machine.commitment.summer_bits_per_second);
  return request.max_bits_per_second > 0 ? std::min(spare, request.max_bits_per_second) : spare;
}

Refusal below(absl::string_view resource, absl::string_view amount, absl::string_view wanted) {
  return {absl::StrCat("node(s) with ", resource, " below ", wanted),
          absl::StrCat(resource, " ", amount, " is below ", wanted)};
}

// Names the resource that the machine lacks.
Refusal shortage(const Machine& machine, const SummerRequest& request, double cpus, double bits_per_second) {
  if (cpus < request.cpus) {
    return below("spare CPU", absl::StrCat(std::max(0.0, std::floor(cpus * 1000) / 1000)), absl::StrCat(request.cpus));
  }
  const uint64_t memory_bytes = machine.profile->status.spare.memory_bytes;
  if (memory_bytes < request.memory_bytes) {
    return below("spare memory", format_bytes(static_cast<double>(memory_bytes)),
                 format_bytes(static_cast<double>(request.memory_bytes)));
  }
  if (bits_per_second <= 0) return {"node(s) without spare bandwidth", "no bandwidth to spare"};
  if (bits_per_second < request.min_bits_per_second) {
    return below("spare bandwidth", format_bits_per_second(bits_per_second),
                 format_bits_per_second(request.min_bits_per_second));
  }
  return {};
}

uint32_t score(const Machine& machine, const SummerRequest& request, double cpus, double bits_per_second) {
  const double bandwidth = request.max_bits_per_second > 0 ? bits_per_second / request.max_bits_per_second
                                                           : bits_per_second / (bits_per_second + kHalfWeightBandwidth);
  const double alone = 1.0 / (1.0 + machine.commitment.summers);
  const double total = kBandwidthWeight * std::min(1.0, bandwidth) + kCpuWeight * std::min(1.0, cpus / kEnoughCpus) +
                       kAloneWeight * alone;
  return static_cast<uint32_t>(std::lround(std::clamp(total, 0.0, 100.0)));
}

}  // namespace

Verdict judge_summer(const Machine& machine, const SummerRequest& request, absl::Time now) {
  Verdict verdict;
  verdict.refusal = exclusion(machine, request, now);
  if (!verdict.refusal.reason.empty()) return verdict;
  const double cpus = spare_cpus(machine);
  const double bits_per_second = spare_bits_per_second(machine, request);
  verdict.refusal = shortage(machine, request, cpus, bits_per_second);
  if (!verdict.refusal.reason.empty()) return verdict;
  verdict.fits = true;
  verdict.bits_per_second = bits_per_second;
  verdict.score = score(machine, request, cpus, bits_per_second);
  return verdict;
}

std::vector<Candidate> summer_candidates(const std::vector<const Machine*>& machines, const SummerRequest& request,
                                         absl::Time now) {
  std::vector<std::pair<const Machine*, Verdict>> fit;
  for (const Machine* machine : machines) {
    Verdict verdict = judge_summer(*machine, request, now);
    if (verdict.fits) fit.emplace_back(machine, std::move(verdict));
  }
  std::sort(fit.begin(), fit.end(), [](const auto& a, const auto& b) {
    if (a.second.score != b.second.score) return a.second.score > b.second.score;
    if (a.second.bits_per_second != b.second.bits_per_second) {
      return a.second.bits_per_second > b.second.bits_per_second;
    }
    return a.first->name < b.first->name;
  });
  std::vector<Candidate> candidates;
  candidates.reserve(fit.size());
  for (const auto& [machine, verdict] : fit) candidates.push_back({machine->name, verdict.bits_per_second});
  return candidates;
}

uint32_t score_worker(const Machine& machine, const std::vector<const Machine*>& placed) {
  return score_worker(machine, placed, default_label_levels());
}

uint32_t score_worker(const Machine& machine, const std::vector<const Machine*>& placed, const LabelLevels& levels) {
  std::vector<const absl::flat_hash_map<std::string, std::string>*> labels;
  labels.reserve(placed.size());
  for (const Machine* other : placed) labels.push_back(&other->labels);
  return Neighbourhood(labels, levels).score(machine.labels);
}

}  // namespace gleaner::placement
