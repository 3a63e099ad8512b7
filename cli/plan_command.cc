// gleaner plan: the plan of a job that is not running, from numbers or from what a cluster has to spare.
#include <CLI/CLI.hpp>
#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/cluster/access.h"
#include "cli/cluster/job_plan.h"
#include "cli/cluster/machines.h"
#include "cli/commands.h"
#include "cli/tensor_list.h"
#include "common/base/status_macros.h"
#include "common/base/units.h"
#include "common/plan/explain.h"
#include "common/plan/model.h"
#include "common/plan/partitioner.h"

namespace gleaner::cli {
namespace {

struct Flags {
  std::string job;  // of a cluster; empty: by numbers
  ClusterFlags cluster;
  int64_t workers = -1;  // -1: as many as there are bandwidths
  int64_t summers = -1;
  std::string bandwidth;
  std::string worker_bandwidths;
  std::string summer_bandwidths;
  std::string tensors;
  std::string bytes;
  std::string partition_bytes;
  std::string output = "table";
};

// The bandwidths of one role: from its list, or --bandwidth for each.
absl::StatusOr<std::vector<double>> bandwidths(absl::string_view role, int64_t count, const std::string& list,
                                               std::optional<double> each) {
  const std::string count_flag = absl::StrCat("--", role, "s");
  const std::string list_flag = absl::StrCat("--", role, "-bandwidths");
  if (count > plan::kMaxMembers) {
    return absl::InvalidArgumentError(absl::StrCat(count_flag, " ", count, ": at most ", plan::kMaxMembers));
  }
  std::vector<double> result;
  if (!list.empty()) {
    for (absl::string_view text : absl::StrSplit(list, ',')) {
      const auto bandwidth = parse_bits_per_second(text);
      if (!bandwidth.ok()) {
        return absl::InvalidArgumentError(absl::StrCat(list_flag, ": ", bandwidth.status().message()));
      }
      result.push_back(*bandwidth);
    }
    if (count >= 0 && static_cast<size_t>(count) != result.size()) {
      return absl::InvalidArgumentError(absl::StrCat(list_flag, " lists ", result.size(), " bandwidths, but ",
                                                     count_flag, " is ", count, ": give one for each, or none"));
    }
    return result;
  }
  if (count <= 0) return result;
  if (!each) return absl::InvalidArgumentError(absl::StrCat("give --bandwidth or ", list_flag));
  result.assign(static_cast<size_t>(count), *each);
  return result;
}

absl::StatusOr<plan::Fleet> fleet_of(const Flags& flags) {
  if (flags.workers == -1 && flags.worker_bandwidths.empty()) {
    return absl::InvalidArgumentError("give --workers N, for example --workers 8");
  }
  std::optional<double> each;
  if (!flags.bandwidth.empty()) {
    const auto parsed = parse_bits_per_second(flags.bandwidth);
    if (!parsed.ok()) return absl::InvalidArgumentError(absl::StrCat("--bandwidth: ", parsed.status().message()));
    each = *parsed;
  }
  plan::Fleet fleet;
  GLN_ASSIGN_OR_RETURN(fleet.worker_bits_per_second,
                       bandwidths("worker", flags.workers, flags.worker_bandwidths, each));
  GLN_ASSIGN_OR_RETURN(fleet.summer_bits_per_second,
                       bandwidths("summer", flags.summers, flags.summer_bandwidths, each));
  return fleet;
}

absl::StatusOr<std::vector<plan::Tensor>> tensors_of(const Flags& flags) {
  if (flags.tensors.empty() == flags.bytes.empty()) {
    return absl::InvalidArgumentError("give either --tensors FILE or --bytes N");
  }
  return flags.tensors.empty() ? one_tensor(flags.bytes) : read_tensors(flags.tensors);
}

absl::StatusOr<plan::Plan> plan_of(const Flags& flags, const plan::Fleet& fleet, std::vector<plan::Tensor> tensors) {
  plan::PartitionOptions options;
  if (!flags.partition_bytes.empty()) {
    const auto bytes = parse_bytes(flags.partition_bytes);
    if (!bytes.ok() || *bytes == 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--partition-bytes: ", bytes.ok() ? "0 is no size; leave it out for the default" : bytes.status().message()));
    }
    options.partition_bytes = *bytes;
  }
  return plan::make_plan(fleet, std::move(tensors), options);
}

// The shortest decimals that read back as the same double.
void append_number(std::string& text, double value) {
  char digits[400];  // 1e308 and 1e-323 fit
  const auto end = std::to_chars(std::begin(digits), std::end(digits), value, std::chars_format::fixed).ptr;
  text.append(digits, end);
}

// `nodes`: of all machines, empty where there is none.
void append_machines(std::string& text, const plan::Explanation& explanation, const std::vector<std::string>& nodes,
                     size_t begin, size_t end) {
  for (size_t member = begin; member < end; ++member) {
    const plan::MachineLoad& machine = explanation.machines[member];
    absl::StrAppend(&text, member == begin ? "\n" : ",\n", "    {\"bandwidth\": ");
    append_number(text, machine.bits_per_second);
    absl::StrAppend(&text, ", \"bytes\": ", machine.owned_bytes);
    if (member < nodes.size() && !nodes[member].empty()) {
      absl::StrAppend(&text, ", \"node\": ", nlohmann::json(nodes[member]).dump());
    }
    text += "}";
  }
}

// Written by hand: a plan may have millions of partitions, and a tree of them would take seconds.
std::string to_json(const plan::Plan& plan, const plan::Explanation& explanation,
                    const std::vector<std::string>& nodes) {
  std::string text;
  text.reserve((explanation.machines.size() + plan.partitions.size()) * 128);
  text += "{\n  \"workers\": [";
  append_machines(text, explanation, nodes, 0, explanation.workers);
  text += "\n  ],\n  \"summers\": [";
  append_machines(text, explanation, nodes, explanation.workers, explanation.machines.size());
  text += "\n  ],\n  \"partitions\": [";
  absl::string_view separator = "\n";
  for (uint32_t tensor = 0; tensor < plan.tensors.size(); ++tensor) {
    const std::string head = absl::StrCat("    {\"tensor\": ", nlohmann::json(plan.tensors[tensor].name).dump());
    for (const plan::Partition& partition : plan.partitions_of(tensor)) {
      absl::StrAppend(&text, separator, head, ", \"offset\": ", partition.offset, ", \"bytes\": ", partition.bytes);
      absl::StrAppend(&text, ", \"owner\": \"", explanation.machines[partition.owner].name, "\"}");
      separator = ",\n";
    }
  }
  text += "\n  ],\n  \"seconds\": ";
  append_number(text, explanation.seconds);
  text += ",\n  \"bound_seconds\": ";
  append_number(text, explanation.bound_seconds);
  text += "\n}\n";
  return text;
}

absl::Status print_plan(const Flags& flags, const plan::Plan& plan, const std::string& head,
                        const std::vector<std::string>& nodes) {
  const plan::Explanation explanation = plan::explain(plan);
  if (flags.output == "json") return print(to_json(plan, explanation, nodes));
  return print(absl::StrCat(head, flags.output == "table" ? plan::to_table(explanation) : plan::to_text(explanation)));
}

// What is reduced in a step: as told, or as the job's workers declared it the last time it ran.
absl::StatusOr<std::vector<plan::Tensor>> tensors_of_job(const Flags& flags, ClusterAccess& access) {
  if (!flags.tensors.empty() || !flags.bytes.empty()) return tensors_of(flags);
  GLN_ASSIGN_OR_RETURN(const std::optional<types::ReductionPlan> plan, access.plan(flags.job));
  if (!plan || plan->spec.bytes_per_step == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("TrainingJob ", access.ns(), "/", flags.job,
                     " has declared no tensors yet: say what a step reduces, --bytes N or --tensors FILE"));
  }
  return one_tensor(absl::StrCat(plan->spec.bytes_per_step));
}

absl::Status run_job_plan(const Flags& flags) {
  if (flags.workers >= 0 || flags.summers >= 0 || !flags.bandwidth.empty() || !flags.worker_bandwidths.empty() ||
      !flags.summer_bandwidths.empty()) {
    return absl::InvalidArgumentError("give either JOB or numbers: the cluster says what machines JOB would have");
  }
  GLN_ASSIGN_OR_RETURN(const auto access, ClusterAccess::open(flags.cluster));
  GLN_ASSIGN_OR_RETURN(const types::TrainingJob job, access->job(flags.job));
  GLN_ASSIGN_OR_RETURN(std::vector<plan::Tensor> tensors, tensors_of_job(flags, *access));
  GLN_ASSIGN_OR_RETURN(const ReadMachines machines, read_machines(*access));
  GLN_ASSIGN_OR_RETURN(const JobFleet fleet, fleet_for(job, machines.fleet, machines.pods, access->now()));
  GLN_ASSIGN_OR_RETURN(const plan::Plan plan, plan_of(flags, fleet.fleet, std::move(tensors)));
  return print_plan(flags, plan, to_text(job, fleet), fleet.nodes);
}

absl::Status run_plan(const Flags& flags) {
  if (!flags.job.empty()) return run_job_plan(flags);
  GLN_ASSIGN_OR_RETURN(const plan::Fleet fleet, fleet_of(flags));
  GLN_ASSIGN_OR_RETURN(std::vector<plan::Tensor> tensors, tensors_of(flags));
  GLN_ASSIGN_OR_RETURN(const plan::Plan plan, plan_of(flags, fleet, std::move(tensors)));
  return print_plan(flags, plan, "", {});
}

}  // namespace

void add_plan(CLI::App& app, Context& context) {
  auto flags = std::make_shared<Flags>();
  CLI::App* plan = app.add_subcommand("plan", "Compute who sums what, and how fast a step can be");
  plan->add_option("JOB", flags->job, "A TrainingJob of a cluster, instead of --workers and what goes with it");
  add_connection_flags(*plan, flags->cluster, Namespaces::kOne);
  plan->add_option("--workers", flags->workers, "Worker (GPU) machines, 1 or more")
      ->check(CLI::Range(int64_t{1}, int64_t{plan::kMaxMembers}));
  plan->add_option("--summers", flags->summers, "Summers on CPU machines, 0 or more [default: 0]")
      ->check(CLI::Range(int64_t{0}, int64_t{plan::kMaxMembers}));
  plan->add_option("--bandwidth", flags->bandwidth, "Of each machine, each way: 25Gbit, 200Mbit, ...");
  plan->add_option("--worker-bandwidths", flags->worker_bandwidths, "One for each worker: 25Gbit,10Gbit,...");
  plan->add_option("--summer-bandwidths", flags->summer_bandwidths, "One for each summer: 25Gbit,10Gbit,...");
  plan->add_option("--tensors", flags->tensors,
                   "JSON file: a list of {\"name\", \"bytes\"} in generation order, with \"dtype\" if wanted");
  plan->add_option("--bytes", flags->bytes, "Instead of --tensors: one tensor of this size, 64MiB or 67108864");
  plan->add_option("--partition-bytes", flags->partition_bytes,
                   "Largest partition, up to 4MiB [default: about 1.4 ms of the slowest worker's link, less for small "
                   "models; -o explain says why]");
  plan->add_option("-o,--output", flags->output,
                   "json: every partition; table: a line per kind of machine; explain: a line per machine, which one "
                   "binds, what one more summer would buy")
      ->check(CLI::IsMember({"json", "table", "explain"}))
      ->capture_default_str();
  plan->callback([flags, &context] {
    context.command = "plan";
    context.run = [flags] { return run_plan(*flags); };
  });
}

}  // namespace gleaner::cli
