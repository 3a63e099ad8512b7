#include "cli/cluster/explain_gpus.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/cluster/table.h"
#include "cli/self/own_command.h"
#include "common/base/first_few.h"
#include "common/base/units.h"
#include "common/machine/profile.h"
#include "common/machine/report.h"
#include "operator/reconcile/gpus.h"

namespace gleaner::cli {
namespace {

using machine::Candidate;

double with_two_digits(double value) {
  if (value <= 0) return 0;
  const double unit = std::pow(10, std::floor(std::log10(value)) - 1);
  return std::round(value / unit) * unit;
}

// Returns a machine that equals those of other workers if theirs are alike.
machine::Machine without_names(machine::Machine machine) {
  for (machine::Switch& node : machine.switches) node.name.clear();
  for (machine::Gpu& gpu : machine.gpus) gpu.name.clear();
  for (machine::Nic& nic : machine.nics) {
    nic.name.clear();
    nic.bandwidth.bits_per_second = with_two_digits(nic.bandwidth.bits_per_second);
  }
  machine.gaps.clear();
  return machine;
}

struct Group {
  machine::Machine nameless;
  AlikeMachines alike;
  double most_traffic_bytes = 0;
};

void add_worker(std::vector<Group>& groups, const api::PlanMember& worker, machine::Machine machine) {
  machine::Machine nameless = without_names(machine);
  auto group = std::find_if(groups.begin(), groups.end(), [&](const Group& each) { return each.nameless == nameless; });
  if (group == groups.end()) {
    group = groups.insert(groups.end(), {std::move(nameless), {{}, std::move(machine), {}}, 0});
  }
  group->alike.workers.push_back(worker.name);
  group->most_traffic_bytes = std::max(group->most_traffic_bytes, static_cast<double>(worker.traffic_bytes));
}

machine::Step step_of(const ExplainedJob& job, double traffic_bytes) {
  machine::Step step{.gradient_bytes = static_cast<double>(job.plan.spec.bytes_per_step)};
  // With schedules, the plan's traffic is as if owners summed all.
  if (job.limit != JobLimit::kSchedules) step.network_share = traffic_bytes / step.gradient_bytes;
  return step;
}

void choose_way(ExplainedGpus& result, const ExplainedJob& job, Group group) {
  auto choice = machine::choose(group.alike.machine, step_of(job, group.most_traffic_bytes));
  if (choice.ok()) {
    group.alike.choice = *std::move(choice);
    result.alike.push_back(std::move(group.alike));
    return;
  }
  for (const std::string& worker : group.alike.workers) {
    result.left_out.push_back(absl::StrCat(worker, ": the NodeProfile of its node: ", choice.status().message()));
  }
}

const machine::Link& busiest_of(const Candidate& candidate) { return candidate.links[candidate.busiest]; }

const Candidate& today_of(const machine::Choice& choice) { return choice.candidates[choice.current]; }

double factor_of(const machine::Choice& choice) { return today_of(choice).seconds / choice.chosen().seconds; }

std::string time_text(const Candidate& candidate) {
  return absl::StrCat(format_seconds(candidate.seconds), "; the busiest link is ", name_of(busiest_of(candidate)), ", ",
                      machine::words_of(busiest_of(candidate).bandwidth));
}

void add_text(std::string& text, absl::string_view label, absl::string_view content) {
  absl::StrAppend(&text, absl::StrFormat("%-11s", label), content, "\n");
}

void add_machines(std::string& text, double gpus_of_worker, const AlikeMachines& alike) {
  const Candidate& best = alike.choice.chosen();
  const size_t gpus = alike.machine.gpus.size();
  add_text(text, "GPUs",
           absl::StrCat(gpus, alike.workers.size() > 1 ? " in each machine of " : " in the machine of ",
                        first_few(alike.workers), "; best way ", name_of(best.way), ": ", words_of(best.way)));
  add_text(text, "", absl::StrCat("A step takes ", time_text(best)));
  add_text(text, "", best.why);
  if (alike.choice.current == alike.choice.best) {
    add_text(text, "", "Gleaner goes this way today");
  } else {
    const Candidate& today = today_of(alike.choice);
    add_text(text, "",
             absl::StrFormat("Gleaner goes %s today: %.3g times as long, %s", name_of(today.way),
                             factor_of(alike.choice), time_text(today)));
  }
  if (gpus_of_worker < static_cast<double>(gpus)) {
    add_text(
        text, "",
        absl::StrCat("Each worker has ", gpus_of_worker, " of its machine's GPUs; the ways are those of all ", gpus));
  }
}

bool shows_assumed(const AlikeMachines& alike) {
  return busiest_of(alike.choice.chosen()).bandwidth.is_assumed ||
         busiest_of(today_of(alike.choice)).bandwidth.is_assumed;
}

nlohmann::json way_json(const Candidate& candidate) {
  return {{"way", name_of(candidate.way)},
          {"seconds", candidate.seconds},
          {"why", candidate.why},
          {"busiest", machine::to_json(busiest_of(candidate))}};
}

nlohmann::json alike_json(const AlikeMachines& alike) {
  nlohmann::json object = {{"workers", alike.workers},
                           {"gpus", alike.machine.gpus.size()},
                           {"best", way_json(alike.choice.chosen())},
                           {"today", way_json(today_of(alike.choice))},
                           {"times_as_long_today", factor_of(alike.choice)},
                           {"unknown", alike.machine.gaps}};
  if (!alike.choice.chosen().runs()) object["why_not_run"] = alike.choice.chosen().unable;
  return object;
}

}  // namespace

double gpus_of_worker(const api::Workers& workers) {
  const double requested = reconcile::requested_gpus(workers.pod_template);
  return requested > 0 ? requested : workers.local_ranks;
}

ExplainedGpus explain_gpus(const ExplainedJob& job, double gpus_of_worker,
                           const absl::StatusOr<std::vector<api::NodeProfile>>& profiles) {
  ExplainedGpus result{.gpus_of_worker = gpus_of_worker};
  if (gpus_of_worker < 2) return result;
  if (!profiles.ok()) {
    result.unread = std::string(profiles.status().message());
    return result;
  }
  std::map<std::string, const api::NodeProfile*> by_node;
  for (const api::NodeProfile& profile : *profiles) by_node[profile.meta.name] = &profile;
  std::vector<Group> groups;
  for (const ExplainedMachine& member : job.machines) {
    const api::PlanMember& worker = member.member;
    if (worker.role != "worker") continue;
    const auto profile = by_node.find(worker.node);
    if (profile == by_node.end()) {
      result.left_out.push_back(absl::StrCat(worker.name, ": there is no NodeProfile of ", or_dash(worker.node)));
    } else if (const size_t gpus = profile->second->status.gpus.size(); gpus < 2) {
      result.left_out.push_back(
          absl::StrCat(worker.name, ": the NodeProfile of ", worker.node, " has ", gpus == 0 ? "no GPU" : "one GPU"));
    } else {
      add_worker(groups, worker, machine::machine_of(profile->second->status));
    }
  }
  for (Group& group : groups) choose_way(result, job, std::move(group));
  return result;
}

std::string to_text(const ExplainedGpus& gpus) {
  if (gpus.is_empty()) return "";
  std::string text;
  if (!gpus.unread.empty()) {
    add_text(text, "GPUs", absl::StrCat("unknown, since NodeProfiles can't be read: ", gpus.unread));
    return text;
  }
  for (const AlikeMachines& alike : gpus.alike) add_machines(text, gpus.gpus_of_worker, alike);
  if (!gpus.left_out.empty()) add_text(text, "", absl::StrCat("Unknown for ", first_few(gpus.left_out, kFew, "; ")));
  if (std::any_of(gpus.alike.begin(), gpus.alike.end(), shows_assumed)) {
    add_text(text, "", "Bandwidths with * are assumed: they are not measured, but those of the machines of BytePS");
  }
  add_text(text, "",
           absl::StrCat("All ways: kubectl get nodeprofile NODE -o json > FILE && ",
                        own_command("topology --machine FILE")));
  return text;
}

nlohmann::json to_json(const ExplainedGpus& gpus) {
  if (gpus.is_empty()) return nullptr;
  if (!gpus.unread.empty()) return {{"error", gpus.unread}};
  nlohmann::json machines = nlohmann::json::array();
  for (const AlikeMachines& alike : gpus.alike) machines.push_back(alike_json(alike));
  return {{"gpus_of_worker", gpus.gpus_of_worker}, {"machines", std::move(machines)}, {"left_out", gpus.left_out}};
}

}  // namespace gleaner::cli
