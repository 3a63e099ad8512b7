#include "cli/plan_flags.h"

#include <memory>
#include <optional>
#include <utility>

#include "cli/copy_flag.h"
#include "common/base/status_macros.h"
#include "common/plan/plan.h"

namespace gleaner::cli {

absl::Status check(const PlanFlags& flags) {
  const bool is_all_reduce = flags.collective.name == "all-reduce";
  if (is_all_reduce && (flags.collective.replicas != 0 || !flags.collective.gather_bytes.empty())) {
    return absl::InvalidArgumentError("--replicas and --gather-bytes: all-reduce has neither; see --collective");
  }
  if (!is_all_reduce && !flags.cluster.job.empty()) {
    return absl::InvalidArgumentError("give either JOB or --collective: a job's gradients are all-reduced");
  }
  if (!is_all_reduce && !flags.topology.text.empty()) {
    return absl::InvalidArgumentError("--topology: only the bound of all-reduce knows uplinks; omit --collective");
  }
  if (wants_hiding(flags.hiding) && (!is_all_reduce || flags.local_ranks > 1 || !flags.cluster.job.empty())) {
    return absl::InvalidArgumentError(
        "--compute-time and --prices: only for the all-reduce of numbers of machines, with one local rank");
  }
  if (!flags.topology.text.empty() && flags.hiding.prices.empty() && !flags.hiding.compute_time.empty()) {
    return absl::InvalidArgumentError(
        "--compute-time: give --prices, too; with --topology the time of a step counts in its price");
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

void add_plan(flags::Command& app, Context& context, std::function<absl::Status(const PlanFlags&)> action) {
  auto flags = std::make_shared<PlanFlags>();
  flags::Command plan = app.add_command("plan", "Compute which machine sums which part, and how fast a step can be");
  plan.add_text("JOB", flags->cluster.job, "A TrainingJob of a cluster, instead of --workers and the bandwidths");
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
  add_placement_flag(plan, flags->topology);
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
  plan.on_chosen(
      [flags, action = std::move(action), &context] { context.run = [flags, action] { return action(*flags); }; });
}

}  // namespace gleaner::cli
