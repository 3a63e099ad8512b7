#include "cli/cluster/top_view.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/cluster/table.h"
#include "common/base/units.h"

namespace gleaner::cli {
namespace {

using placement::Machine;

double spare_of(const Machine& machine) {
  return machine.profile == nullptr ? -1 : machine.profile->status.spare.bits_per_second;
}

void sort_by_spare(Machines& machines) {
  std::sort(machines.begin(), machines.end(), [](const auto& a, const auto& b) {
    return std::pair(-spare_of(*a), a->name) < std::pair(-spare_of(*b), b->name);
  });
}

// Returns whether the machine could take the summer of a job with the smallest requirements.
placement::Verdict judge(const Machine& machine, absl::Time now) { return judge_summer(machine, {}, now); }

std::string machines_table(const Machines& machines, absl::Time now) {
  std::vector<std::vector<std::string>> rows = {
      {"NODE", "SPEED", "SPARE BANDWIDTH", "SPARE CPU", "SPARE MEMORY", "SUMMERS", "PROFILE", "FOR A SUMMER"}};
  for (const auto& machine : machines) {
    const placement::Verdict verdict = judge(*machine, now);
    std::vector<std::string> row = {machine->name, "-", "-", "-", "-", absl::StrCat(machine->commitment.summers), "-"};
    if (machine->profile != nullptr) {
      const api::NodeProfileStatus& status = machine->profile->status;
      row[1] = status.bits_per_second > 0 ? format_bits_per_second(status.bits_per_second) : "unknown";
      row[2] = format_bits_per_second(status.spare.bits_per_second);
      row[3] = absl::StrFormat("%.1f of %.0f", status.spare.cpus, status.cpus);
      row[4] = format_bytes(static_cast<double>(status.spare.memory_bytes));
      row[6] = absl::StrCat(age(status.observed_time, now), status.observed_time == absl::InfinitePast() ? "" : " old");
    }
    row.push_back(verdict.fits ? format_bits_per_second(verdict.bits_per_second)
                               : absl::StrCat("no: ", verdict.refusal.why_not));
    rows.push_back(std::move(row));
  }
  return table(rows);
}

// Parses "12.3 MB/s", to sort by it. Returns 0 for other text.
double goodput_of(const api::TrainingJob& job) {
  const std::string& text = job.status.communication.goodput;
  const size_t space = text.find(' ');
  if (space == std::string::npos) return 0;
  const auto scale = parse_bytes(absl::StrCat(1, text.substr(space + 1, text.find('/') - space - 1)));
  double number = 0;
  return scale.ok() && absl::SimpleAtod(text.substr(0, space), &number) ? number * static_cast<double>(*scale) : 0;
}

std::string jobs_table(const std::vector<api::TrainingJob>& jobs) {
  std::vector<std::vector<std::string>> rows = {
      {"JOB", "PHASE", "WORKERS", "SUMMERS", "BOUND", "GOODPUT", "EFFICIENCY", "STRATEGY", "BITS"}};
  for (const api::TrainingJob& job : jobs) {
    rows.push_back({job.meta.key(), or_dash(job.status.phase),
                    absl::StrCat(job.status.workers_ready, "/", job.workers.replicas),
                    absl::StrCat(job.status.summers_ready), or_dash(job.status.communication.bound),
                    or_dash(job.status.communication.goodput), or_dash(job.status.communication.efficiency),
                    or_dash(job.status.communication.strategy), or_dash(job.status.communication.bits)});
  }
  return table(rows);
}

}  // namespace

std::string top_text(Machines machines, std::vector<api::TrainingJob> jobs, absl::Time now) {
  sort_by_spare(machines);
  jobs.erase(std::remove_if(jobs.begin(), jobs.end(), [](const auto& job) { return job.status.workers_ready == 0; }),
             jobs.end());
  std::sort(jobs.begin(), jobs.end(), [](const auto& a, const auto& b) {
    return std::pair(-goodput_of(a), a.meta.key()) < std::pair(-goodput_of(b), b.meta.key());
  });
  return absl::StrCat(machines.empty() ? "No nodes.\n" : machines_table(machines, now), "\n",
                      jobs.empty() ? "No job has workers running.\n" : jobs_table(jobs));
}

nlohmann::json top_json(Machines machines, const std::vector<api::TrainingJob>& jobs, absl::Time now) {
  using nlohmann::json;
  sort_by_spare(machines);
  json nodes = json::array(), running = json::array();
  for (const auto& machine : machines) {
    const placement::Verdict verdict = judge(*machine, now);
    json node = {{"node", machine->name}, {"summers", machine->commitment.summers}, {"fits", verdict.fits}};
    if (!verdict.fits) node["why_not"] = verdict.refusal.why_not;
    if (machine->profile != nullptr) {
      const api::NodeProfileStatus& status = machine->profile->status;
      node["bandwidth"] = status.bits_per_second;
      node["spare"] = {{"bandwidth", status.spare.bits_per_second},
                       {"cpus", status.spare.cpus},
                       {"memory_bytes", status.spare.memory_bytes}};
      node["profile_age_seconds"] = absl::ToDoubleSeconds(now - status.observed_time);
    }
    nodes.push_back(std::move(node));
  }
  for (const api::TrainingJob& job : jobs) {
    running.push_back({{"namespace", job.meta.ns},
                       {"job", job.meta.name},
                       {"phase", job.status.phase},
                       {"workers", job.status.workers_ready},
                       {"summers", job.status.summers_ready},
                       {"strategy", job.status.communication.strategy},
                       {"bits", job.status.communication.bits},
                       {"goodput", job.status.communication.goodput},
                       {"efficiency", job.status.communication.efficiency}});
  }
  return {{"nodes", std::move(nodes)}, {"jobs", std::move(running)}};
}

}  // namespace gleaner::cli
