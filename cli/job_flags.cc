#include "cli/job_flags.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "cli/job_network.h"
#include "cli/networks/stages_flag.h"
#include "cli/self/own_command.h"
#include "common/base/status_macros.h"
#include "common/collective/algorithms.h"
#include "common/flags/groups.h"
#include "common/plan/plan.h"
#include "common/plan/schedule_name.h"
#include "common/strategy/strategy.h"

namespace gleaner::cli {
namespace {

absl::StatusOr<strategy::Strategy> parse_strategy(const StrategyFlags& flags) {
  const char* const option = !flags.stages.empty() ? "--stages" : flags.radix > 0 ? "--radix" : nullptr;
  if (flags.name != plan::kSummersStrategy || option == nullptr) {
    GLN_ASSIGN_OR_RETURN(std::vector<uint32_t> stages, parse_stages(flags.stages));
    return strategy::make_strategy(flags.name, std::move(stages), static_cast<uint32_t>(flags.radix));
  }
  return absl::InvalidArgumentError(absl::StrCat(option, " is an option of a schedule; choose one with --strategy"));
}

}  // namespace

void add_job_flags(flags::Command& command, JobFlags& flags, const std::string& default_log_level) {
  const int64_t most = plan::kMaxMembers;
  flags.log_level = default_log_level;
  add_workers_flag(command, flags.workers).required();
  add_summers_flag(command, flags.summers).show_default();
  add_local_ranks_flag(command, flags.local_ranks);
  command
      .add_number("--min-workers", flags.min_workers,
                  "Elastic job: the least number of workers with which the job goes on [default: n is fixed]")
      .between(int64_t{1}, most);
  command
      .add_number("--max-workers", flags.max_workers,
                  "Elastic job: the largest number of workers [default: --workers, with --min-workers]")
      .between(int64_t{1}, most);
  command
      .add_number("--regroup-timeout", flags.regroup_timeout,
                  "Elastic job: seconds to wait for workers between two rounds")
      .between(0.1, 1e6)
      .show_default();
  command.add_text("--job", flags.job, "Name of the job").show_default().name();
  add_bandwidth_flags(command, flags.bandwidths,
                      "Bandwidth of each machine, each way: 25Gbit, 200Mbit, ... [default: each member's own; else "
                      "links count as equal]");
  add_partition_bytes_flag(command, flags.partition_bytes, absl::StrCat("as for `", own_command("plan"), "`"));
  command
      .add_text(
          "--strategy", flags.strategy.name,
          absl::StrCat("How tensors are summed: by summers, by the schedule of a collective between the workers (",
                       own_command("schedule"), "), or auto: each by the fastest for its size (",
                       own_command("strategies"), ")"))
      .one_of(strategy::strategy_names())
      .show_default();
  command
      .add_text("--bits", flags.strategy.bits,
                "Bits of sums: RankOrder, those of sums in rank order, whatever strategies auto chooses; or Schedule, "
                "those of each strategy, so auto may choose any [default: RankOrder for summers, auto and gather]")
      .one_of_any_case({plan::name_of(plan::Bits::kRankOrder), plan::name_of(plan::Bits::kSchedule)});
  command.add_text("--stages", flags.strategy.stages,
                   "Strategy blueconnect, racks or two-level: the sizes of its stages, as 3,2,2");
  command
      .add_number("--radix", flags.strategy.radix,
                  "Strategy bcube: peers of a stage and one [default: the best that fits]")
      .between(int64_t{2}, int64_t{collective::kMaxRanks});
  add_job_network_flags(command, flags);
  command.add_number("--start-timeout", flags.start_timeout, "Seconds until every member must have joined")
      .between(0.1, 1e6)
      .show_default();
  command.add_number("--deadline", flags.deadline, "Seconds of silence after which a member is lost")
      .between(0.1, 1e6)
      .show_default();
  command
      .add_number("--declare-timeout", flags.declare_timeout,
                  "Seconds that ranks may wait for each other, or for a tensor that a rank does not declare [default: "
                  "60, but without a limit for a rank that is busy]")
      .between(0.1, 1e6);
  command.add_text("--summary", flags.summary, "Write the summary of the job as JSON to this file");
  command.add_text("--metrics", flags.metrics, "Serve Prometheus metrics of the coordinator on HOST:PORT")
      .optional_address();
  flags::add_log_level(command, flags.log_level);
}

absl::StatusOr<coordinator::Options> to_options(const JobFlags& flags) {
  coordinator::Options options;
  options.job = flags.job;
  options.workers = static_cast<uint32_t>(flags.workers);
  options.summers = static_cast<uint32_t>(flags.summers);
  options.local_ranks = static_cast<uint32_t>(flags.local_ranks);
  if (flags.min_workers > 0 || flags.max_workers > 0) {
    options.min_workers = static_cast<uint32_t>(std::max(flags.min_workers, int64_t{1}));
    options.max_workers = static_cast<uint32_t>(flags.max_workers > 0 ? flags.max_workers : flags.workers);
  }
  GLN_ASSIGN_OR_RETURN(const Bandwidths bandwidths, parse_bandwidths(flags.bandwidths));
  if (bandwidths.each) options.bits_per_second = *bandwidths.each;
  options.worker_bits_per_second = bandwidths.workers;
  options.summer_bits_per_second = bandwidths.summers;
  GLN_ASSIGN_OR_RETURN(const auto partition_bytes, parse_partition_bytes(flags.partition_bytes));
  if (partition_bytes) options.partition_bytes = *partition_bytes;
  GLN_ASSIGN_OR_RETURN(options.reduction.strategy, parse_strategy(flags.strategy));
  if (!flags.strategy.bits.empty()) options.reduction.bits = plan::parse_bits(flags.strategy.bits);
  GLN_RETURN_IF_ERROR(set_network(flags, options));
  options.regroup_timeout = absl::Seconds(flags.regroup_timeout);
  options.start_timeout = absl::Seconds(flags.start_timeout);
  options.deadline = absl::Seconds(flags.deadline);
  if (flags.declare_timeout > 0) {
    options.declare_timeouts.waiting = absl::Seconds(flags.declare_timeout);
    options.declare_timeouts.busy = options.declare_timeouts.waiting;
  }
  GLN_RETURN_IF_ERROR(coordinator::validate(options));
  return options;
}

}  // namespace gleaner::cli
