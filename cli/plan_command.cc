// gleaner plan: prints the plan that a job would get, computed from numbers or from the spare resources of a cluster.
#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "cli/cluster/access.h"
#include "cli/cluster/job_plan.h"
#include "cli/cluster/machines.h"
#include "cli/collective_bound.h"
#include "cli/commands.h"
#include "cli/copy_flag.h"
#include "cli/fleet_flags.h"
#include "cli/hiding_report.h"
#include "cli/tensor_list.h"
#include "cli/topology_flags.h"
#include "common/base/status_macros.h"
#include "common/plan/explain.h"
#include "common/plan/explain_uplinks.h"
#include "common/plan/model.h"
#include "common/plan/partitioner.h"
#include "common/plan/uplinks.h"

namespace gleaner::cli {
namespace {

struct Flags {
  std::string job;  // a TrainingJob of the cluster; empty: the flags give the numbers
  ClusterFlags cluster;
  int64_t workers = -1;  // -1: as many as worker_bandwidths lists
  int64_t summers = -1;  // -1: as many as summer_bandwidths lists
  int64_t local_ranks = 1;
  BandwidthFlags bandwidths;
  TensorFlags tensors;
  std::string partition_bytes;
  CollectiveFlags collective;
  TopologyFlags topology;
  HidingFlags hiding;
  std::string copy;  // empty: not given
  std::string output = "table";
};

// Returns the bandwidths of one role ("worker" or "summer"): those of its list, or else `each` for each machine.
absl::StatusOr<std::vector<double>> bandwidths_of(absl::string_view role, int64_t count,
                                                  const std::vector<double>& list, std::optional<double> each) {
  const std::string count_flag = absl::StrCat("--", role, "s");
  const std::string list_flag = absl::StrCat("--", role, "-bandwidths");
  if (!list.empty()) {
    if (count >= 0 && static_cast<size_t>(count) != list.size()) {
      return absl::InvalidArgumentError(absl::StrCat(list_flag, " lists ", list.size(), " bandwidths, but ", count_flag,
                                                     " is ", count, ": give one for each, or none"));
    }
    return list;
  }
  if (count <= 0) return std::vector<double>();
  if (!each) return absl::InvalidArgumentError(absl::StrCat("give --bandwidth or ", list_flag));
  return std::vector<double>(static_cast<size_t>(count), *each);
}

absl::StatusOr<plan::Fleet> fleet_of(const Flags& flags) {
  if (flags.workers == -1 && flags.bandwidths.workers.empty()) {
    return absl::InvalidArgumentError("give --workers N, for example --workers 8");
  }
  GLN_ASSIGN_OR_RETURN(const Bandwidths given, parse_bandwidths(flags.bandwidths));
  plan::Fleet fleet;
  GLN_ASSIGN_OR_RETURN(fleet.worker_bits_per_second, bandwidths_of("worker", flags.workers, given.workers, given.each));
  GLN_ASSIGN_OR_RETURN(fleet.summer_bits_per_second, bandwidths_of("summer", flags.summers, given.summers, given.each));
  return fleet;
}

// Returns the network of --topology, whose links --bandwidth and --uplink describe; nothing without it.
absl::StatusOr<std::optional<topology::Topology>> network_of(const Flags& flags) {
  if (flags.topology.text.empty()) {
    if (flags.topology.uplink.empty()) return std::nullopt;
    return absl::InvalidArgumentError("--uplink: give --topology, too");
  }
  if (!flags.bandwidths.workers.empty() || !flags.bandwidths.summers.empty()) {
    return absl::InvalidArgumentError(
        "give either --topology or lists of bandwidths: the links of the topology have the bandwidths");
  }
  if (flags.workers == -1) return absl::InvalidArgumentError("give --workers N, for example --workers 8");
  TopologyFlags topology = flags.topology;
  topology.bandwidth = flags.bandwidths.each;
  return topology_of(topology);
}

absl::StatusOr<plan::Fleet> fleet_in(const Flags& flags, const topology::Topology& topology) {
  const auto fleet = plan::fleet_of(topology, static_cast<uint32_t>(flags.workers),
                                    static_cast<uint32_t>(std::max(flags.summers, int64_t{0})));
  if (fleet.ok()) return fleet;
  return absl::InvalidArgumentError(absl::StrCat("--topology: ", fleet.status().message()));
}

absl::StatusOr<plan::Plan> plan_of(const Flags& flags, const plan::Fleet& fleet, std::vector<plan::Tensor> tensors,
                                   uint32_t local_ranks, std::vector<double> shares = {}) {
  plan::PartitionOptions options;
  options.shares = std::move(shares);
  GLN_ASSIGN_OR_RETURN(const auto partition_bytes, parse_partition_bytes(flags.partition_bytes));
  if (partition_bytes) options.partition_bytes = *partition_bytes;
  return plan::make_plan(fleet, std::move(tensors), options, local_ranks);
}

double total_bytes(const std::vector<plan::Tensor>& tensors) {
  double bytes = 0;
  for (const plan::Tensor& tensor : tensors) bytes += static_cast<double>(tensor.bytes());
  return bytes;
}

// Appends the shortest decimal number that is read back as the same double.
void append_number(std::string& text, double value) {
  char digits[400];  // 1e308 and 1e-323 fit
  const auto end = std::to_chars(std::begin(digits), std::end(digits), value, std::chars_format::fixed).ptr;
  text.append(digits, end);
}

// Appends the machines from `begin` to `end`. `nodes` has the node of each machine; empty: unknown.
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

// Writes the JSON without a JSON tree, which would take seconds for a plan with millions of partitions.
// `hiding`: a JSON value; empty: none.
std::string to_json(const plan::Plan& plan, const plan::Explanation& explanation, const std::vector<std::string>& nodes,
                    const std::string& hiding) {
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
  if (!explanation.binding_link.empty()) {
    absl::StrAppend(&text, ",\n  \"binding_link\": ", nlohmann::json(explanation.binding_link).dump());
  }
  if (explanation.copies) absl::StrAppend(&text, ",\n  \"copy\": ", copy_json(*explanation.copies));
  if (!hiding.empty()) absl::StrAppend(&text, ",\n  \"hiding\": ", hiding);
  text += "\n}\n";
  return text;
}

absl::Status print_plan(const Flags& flags, const plan::Plan& plan, plan::Explanation explanation,
                        const std::string& head, const std::vector<std::string>& nodes) {
  GLN_ASSIGN_OR_RETURN(const std::optional<double> copy, parse_copy_bandwidth(flags.copy));
  if (copy) plan::explain_copies(plan, *copy, explanation);
  std::vector<strategy::Hiding> hiding;
  if (wants_hiding(flags.hiding)) {
    GLN_ASSIGN_OR_RETURN(hiding, hiding_of(flags.hiding, plan::fleet_of(plan), total_bytes(plan.tensors)));
  }
  if (flags.output == "json") {
    return print(to_json(plan, explanation, nodes, hiding.empty() ? "" : hiding_json(hiding)));
  }
  std::string text = flags.output == "table" ? plan::to_table(explanation) : plan::to_text(explanation);
  if (!hiding.empty()) absl::StrAppend(&text, "\n", hiding_table(hiding));
  if (!hiding.empty() && flags.output == "explain") absl::StrAppend(&text, "\n", hiding_text(hiding));
  return print(absl::StrCat(head, text));
}

// Returns the tensors of a step: those of the flags, or else one tensor with as many bytes as the job's workers
// declared in their last run.
absl::StatusOr<std::vector<plan::Tensor>> tensors_of_job(const Flags& flags, ClusterAccess& access) {
  if (!flags.tensors.file.empty() || !flags.tensors.bytes.empty()) return tensors_of(flags.tensors);
  GLN_ASSIGN_OR_RETURN(const std::optional<api::ReductionPlan> plan, access.plan(flags.job));
  if (!plan || plan->spec.bytes_per_step == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("TrainingJob ", access.ns(), "/", flags.job,
                     " has declared no tensors yet: give the tensors of a step by --bytes N or --tensors FILE"));
  }
  return one_tensor(absl::StrCat(plan->spec.bytes_per_step));
}

absl::Status run_job_plan(const Flags& flags) {
  if (flags.workers >= 0 || flags.summers >= 0 || flags.local_ranks > 1 || !flags.bandwidths.each.empty() ||
      !flags.bandwidths.workers.empty() || !flags.bandwidths.summers.empty() || !flags.topology.text.empty()) {
    return absl::InvalidArgumentError("give either JOB or numbers: the machines of JOB come from the cluster");
  }
  GLN_ASSIGN_OR_RETURN(const auto access, ClusterAccess::open(flags.cluster));
  GLN_ASSIGN_OR_RETURN(const api::TrainingJob job, access->job(flags.job));
  GLN_ASSIGN_OR_RETURN(std::vector<plan::Tensor> tensors, tensors_of_job(flags, *access));
  GLN_ASSIGN_OR_RETURN(const ReadMachines machines, read_machines(*access));
  GLN_ASSIGN_OR_RETURN(const JobFleet fleet, fleet_for(job, machines.fleet, machines.pods, access->now()));
  GLN_ASSIGN_OR_RETURN(const plan::Plan plan, plan_of(flags, fleet.fleet, std::move(tensors), job.workers.local_ranks));
  return print_plan(flags, plan, plan::explain(plan), to_text(job, fleet), fleet.nodes);
}

// Prints the plan of machines whose own links limit a step.
absl::Status run_fleet_plan(const Flags& flags, const plan::Fleet& fleet, std::vector<plan::Tensor> tensors) {
  GLN_ASSIGN_OR_RETURN(const plan::Plan plan,
                       plan_of(flags, fleet, std::move(tensors), static_cast<uint32_t>(flags.local_ranks)));
  return print_plan(flags, plan, plan::explain(plan), "", {});
}

// Prints the plan of machines in a network, whose links between switches limit a step, too.
absl::Status run_network_plan(const Flags& flags, const topology::Topology& topology, const plan::Fleet& fleet,
                              std::vector<plan::Tensor> tensors) {
  GLN_RETURN_IF_ERROR(plan::validate(fleet));
  const auto bound = plan::bound_with_uplinks(topology, fleet.n(), fleet.k(), total_bytes(tensors));
  if (!bound.ok()) return absl::InvalidArgumentError(absl::StrCat("--topology: ", bound.status().message()));
  GLN_ASSIGN_OR_RETURN(const plan::Plan plan, plan_of(flags, fleet, std::move(tensors), 1, bound->shares));
  plan::Explanation explanation = plan::explain(plan);
  GLN_RETURN_IF_ERROR(plan::explain_uplinks(topology, plan, explanation));
  return print_plan(flags, plan, std::move(explanation), "", {});
}

absl::Status check_collective(const Flags& flags) {
  const bool is_all_reduce = flags.collective.name == "all-reduce";
  if (is_all_reduce && (flags.collective.replicas != 0 || !flags.collective.gather_bytes.empty())) {
    return absl::InvalidArgumentError("--replicas and --gather-bytes: all-reduce has neither; see --collective");
  }
  if (!is_all_reduce && !flags.job.empty()) {
    return absl::InvalidArgumentError("give either JOB or --collective: a job's gradients are all-reduced");
  }
  if (!is_all_reduce && !flags.topology.text.empty()) {
    return absl::InvalidArgumentError("--topology: only the bound of all-reduce knows uplinks; omit --collective");
  }
  if (wants_hiding(flags.hiding) &&
      (!is_all_reduce || !flags.topology.text.empty() || flags.local_ranks > 1 || !flags.job.empty())) {
    return absl::InvalidArgumentError(
        "--compute-time and --prices: only for the all-reduce of numbers of machines on one switch, with one local "
        "rank");
  }
  GLN_ASSIGN_OR_RETURN(const std::optional<double> copy, parse_copy_bandwidth(flags.copy));
  if (copy && (!is_all_reduce || wants_hiding(flags.hiding))) {
    return absl::InvalidArgumentError("--copy: only for the plan of an all-reduce, without --compute-time");
  }
  if (flags.local_ranks > 1 && (!is_all_reduce || !flags.topology.text.empty())) {
    return absl::InvalidArgumentError(
        "--local-ranks: bounds with --topology, and of other operations than all-reduce, are for one local rank");
  }
  return absl::OkStatus();
}

absl::Status run_plan(const Flags& flags) {
  GLN_RETURN_IF_ERROR(check_collective(flags));
  if (!flags.job.empty()) return run_job_plan(flags);
  GLN_ASSIGN_OR_RETURN(const std::optional<topology::Topology> topology, network_of(flags));
  GLN_ASSIGN_OR_RETURN(const plan::Fleet fleet, topology ? fleet_in(flags, *topology) : fleet_of(flags));
  GLN_ASSIGN_OR_RETURN(std::vector<plan::Tensor> tensors, tensors_of(flags.tensors));
  if (topology) return run_network_plan(flags, *topology, fleet, std::move(tensors));
  if (flags.collective.name == "all-reduce") return run_fleet_plan(flags, fleet, std::move(tensors));
  GLN_ASSIGN_OR_RETURN(const std::string text,
                       collective_bound(flags.collective, fleet, total_bytes(tensors), flags.output));
  return print(text);
}

}  // namespace

void add_plan(flags::Command& app, Context& context) {
  auto flags = std::make_shared<Flags>();
  flags::Command plan = app.add_command("plan", "Compute which machine sums which part, and how fast a step can be");
  plan.add_text("JOB", flags->job, "A TrainingJob of a cluster, instead of --workers and the bandwidths");
  add_connection_flags(plan, flags->cluster, Namespaces::kOne);
  add_workers_flag(plan, flags->workers);
  add_summers_flag(plan, flags->summers, " [default: 0]");
  add_local_ranks_flag(plan, flags->local_ranks, "; with several, workers push sums of fp16 and bf16 in fp32");
  add_bandwidth_flags(plan, flags->bandwidths, "Bandwidth of each machine, each way: 25Gbit, 200Mbit, ...");
  add_tensor_flags(plan, flags->tensors);
  add_hiding_flags(plan, flags->hiding);
  add_copy_flag(plan, flags->copy);
  add_topology_flag(plan, flags->topology);
  plan.add_text("--uplink", flags->topology.uplink, "Bandwidth of each link between switches of --topology SPEC");
  add_partition_bytes_flag(
      plan, flags->partition_bytes,
      "about 1.4 ms of the slowest worker's link, less for small models; -o explain has the reason");
  plan.add_text(
          "--collective", flags->collective.name,
          "The operation: all-reduce has a plan; the others have a bound, and 'summers buy nothing' where that is "
          "so. fsdp: reduce-scatter and all-gather at the same time; hsdp: the all-reduce between replicas of "
          "shards")
      .one_of({"all-reduce", "reduce-scatter", "all-gather", "fsdp", "hsdp"})
      .show_default();
  plan.add_number("--replicas", flags->collective.replicas, "hsdp: how many workers hold the same shard")
      .between(uint64_t{1}, uint64_t{plan::kMaxMembers});
  plan.add_text("--gather-bytes", flags->collective.gather_bytes,
                "fsdp: bytes that are gathered while --bytes are reduced [default: as many]");
  plan.add_text("-o,--output", flags->output,
                "json: every partition; table: a line per kind of machine; explain: a line per machine, which one "
                "limits the step, what one more summer would gain")
      .one_of({"json", "table", "explain"})
      .show_default();
  plan.on_chosen([flags, &context] { context.run = [flags] { return run_plan(*flags); }; });
}

}  // namespace gleaner::cli
