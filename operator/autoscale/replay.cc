#include "operator/autoscale/replay.h"

#include <algorithm>
#include <map>
#include <optional>
#include <stdexcept>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "operator/autoscale/autoscaler.h"

namespace gleaner::autoscale {
namespace {

using nlohmann::json;

struct Machine {
  double cpus = 0;
  double bits_per_second = 0;
};

double number(const json& object, const char* name, double otherwise) {
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? otherwise : found->get<double>();
}

Settings read_settings(const json& object) {
  Settings settings;
  const auto seconds = [&object](const char* name, absl::Duration& value) {
    value = absl::Seconds(number(object, name, absl::ToDoubleSeconds(value)));
  };
  settings.measured = object.value("measured", true);
  settings.min_gain = number(object, "worth", settings.min_gain);
  settings.min_loss = number(object, "keep", settings.min_loss);
  settings.take_over = number(object, "takeOver", settings.take_over);
  seconds("idleSeconds", settings.idle);
  seconds("growPauseSeconds", settings.grow_pause);
  seconds("returnPauseSeconds", settings.return_pause);
  seconds("freshSeconds", settings.fresh);
  return settings;
}

class Recording {
 public:
  explicit Recording(const json& recording) : autoscaler_(read_settings(recording.value("settings", json::object()))) {
    for (const json& job : recording.at("jobs")) add_job(job);
  }

  void round(const json& round, std::vector<Decided>& decisions) {
    const double at = round.at("at").get<double>();
    if (at < last_) throw std::invalid_argument("rounds are not in order of time");
    for (auto& [key, job] : jobs_) {
      for (Summer& summer : job.summers) summer.age += absl::Seconds(at - last_);
    }
    last_ = at;
    take(round);
    std::vector<Job> jobs;
    for (auto& [key, job] : jobs_) jobs.push_back(seen(job));
    for (auto& [key, verdict] : autoscaler_.round(jobs, absl::Seconds(at))) {
      decisions.push_back({at, key, static_cast<uint32_t>(jobs_[key].summers.size()), verdict});
      follow(jobs_[key], verdict);
    }
  }

 private:
  void add_job(const json& object) {
    Job job;
    job.key = object.at("key").get<std::string>();
    job.min = object.value("min", 0U);
    job.max = object.value("max", 0U);
    job.priority = object.value("priority", 0);
    job.summer_cpus = number(object, "summerCpus", 0.1);
    job.worker_bits_per_second = object.at("workers").get<std::vector<double>>();
    job.bytes_per_step = object.at("bytesPerStep").get<double>();
    job.push_ratio = number(object, "pushRatio", 1);
    const json summers = object.value("summers", json::array());
    for (const json& node : summers) {
      add_summer(job, node.get<std::string>(), number(object, "summerBandwidth", 1e9));
    }
    jobs_[job.key] = std::move(job);
  }

  void add_summer(Job& job, const std::string& node, double bits_per_second) {
    job.summers.push_back({next_[job.key]++, node, bits_per_second, true, false, absl::ZeroDuration(), {}});
  }

  void take(const json& round) {
    const json machines = round.value("machines", json::object());
    for (const auto& [node, machine] : machines.items()) {
      if (machine.is_null()) {
        machines_.erase(node);
      } else {
        machines_[node] = {machine.at("cpus").get<double>(), machine.at("bandwidth").get<double>()};
      }
    }
    const json jobs = round.value("jobs", json::object());
    for (const auto& [key, measured] : jobs.items()) {
      const auto job = jobs_.find(key);
      if (job == jobs_.end())
        throw std::invalid_argument(absl::StrCat("a round has job ", key, ", which is not known"));
      job->second.step_seconds = job->second.exposed_seconds = std::nullopt;
      if (measured.is_null()) continue;
      const absl::Duration age = absl::Seconds(number(measured, "age", 0));
      job->second.step_seconds = Reading{measured.at("step").get<double>(), age};
      job->second.exposed_seconds = Reading{measured.at("exposed").get<double>(), age};
    }
  }

  // Returns the job with `suitability`, `candidates` and `contested` set from the recorded machines. A machine takes at
  // most one summer.
  Job seen(const Job& recorded) const {
    Job job = recorded;
    std::map<std::string, std::pair<std::string, uint32_t>> taken;
    for (const auto& [key, other] : jobs_) {
      for (const Summer& summer : other.summers) taken[summer.node] = {key, summer.index};
    }
    for (Summer& summer : job.summers) {
      const auto machine = machines_.find(summer.node);
      if (machine == machines_.end()) continue;
      const bool fits = machine->second.cpus >= job.summer_cpus && machine->second.bits_per_second > 0;
      summer.suitability = Suitability{fits, fits ? "" : absl::StrCat("spare CPU is ", machine->second.cpus)};
    }
    for (const auto& [node, machine] : machines_) {
      if (machine.cpus < job.summer_cpus || machine.bits_per_second <= 0) continue;
      const Candidate candidate{node, machine.bits_per_second, Reading{machine.cpus, {}},
                                Reading{machine.bits_per_second, {}}};
      const auto holder = taken.find(node);
      if (holder == taken.end()) {
        job.candidates.push_back(candidate);
      } else if (holder->second.first != job.key) {
        job.contested.push_back({candidate, holder->second.first, holder->second.second});
      }
    }
    return job;
  }

  void follow(Job& job, const Verdict& verdict) {
    for (const Removal& removal : verdict.remove) {
      std::erase_if(job.summers, [&removal](const Summer& summer) { return summer.index == removal.index; });
    }
    if (verdict.add.has_value()) add_summer(job, verdict.add->node, verdict.add->bits_per_second);
  }

  Autoscaler autoscaler_;
  std::map<std::string, Job> jobs_;
  std::map<std::string, uint32_t> next_;
  std::map<std::string, Machine> machines_;
  double last_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<Decided>> replay(const json& recording) {
  std::vector<Decided> decisions;
  try {
    Recording state(recording);
    for (const json& round : recording.at("rounds")) state.round(round, decisions);
  } catch (const std::exception& error) {  // thrown by the JSON parser, or above
    return absl::InvalidArgumentError(absl::StrCat("not a recording of series: ", error.what()));
  }
  return decisions;
}

std::string to_text(const std::vector<Decided>& decisions, bool every) {
  std::string text =
      absl::StrFormat("%8s  %-20s %3s %6s  %-14s %s\n", "SECONDS", "JOB", "HAD", "WANTED", "REASON", "WHY");
  std::map<std::string, std::pair<Code, uint32_t>> last;
  for (const Decided& decided : decisions) {
    const std::pair<Code, uint32_t> now{decided.verdict.code, decided.verdict.wanted};
    const auto before = last.find(decided.job);
    if (!every && before != last.end() && before->second == now) continue;
    last[decided.job] = now;
    absl::StrAppendFormat(&text, "%8.0f  %-20s %3d %6d  %-14s %s\n", decided.at, decided.job, decided.had,
                          decided.verdict.wanted, to_string(decided.verdict.code), decided.verdict.why);
  }
  return text;
}

}  // namespace gleaner::autoscale
