#include "cli/job_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/base/units.h"
#include "common/plan/plan.h"

namespace gleaner::cli {
namespace {

absl::StatusOr<std::vector<double>> parse_bandwidths(absl::string_view flag, const std::string& list) {
  std::vector<double> result;
  if (list.empty()) return result;
  for (absl::string_view text : absl::StrSplit(list, ',')) {
    const auto bandwidth = parse_bits_per_second(text);
    if (!bandwidth.ok()) return absl::InvalidArgumentError(absl::StrCat(flag, ": ", bandwidth.status().message()));
    result.push_back(*bandwidth);
  }
  return result;
}

}  // namespace

void add_job_flags(CLI::App& command, JobFlags& flags, const std::string& default_log_level) {
  const int64_t most = plan::kMaxMembers;
  flags.log_level = default_log_level;
  command.add_option("--workers", flags.workers, "Worker (GPU) machines, 1 or more")
      ->required()
      ->check(CLI::Range(int64_t{1}, most));
  command.add_option("--summers", flags.summers, "Summers on CPU machines, 0 or more")
      ->check(CLI::Range(int64_t{0}, most))
      ->capture_default_str();
  command.add_option("--local-ranks", flags.local_ranks, "Processes (GPUs) of each worker")
      ->check(CLI::Range(int64_t{1}, int64_t{plan::kMaxRanks}))
      ->capture_default_str();
  command
      .add_option("--min-workers", flags.min_workers,
                  "Elastic job: goes on with as few when workers are lost [default: n is fixed]")
      ->check(CLI::Range(int64_t{1}, most));
  command
      .add_option("--max-workers", flags.max_workers,
                  "Elastic job: takes in as many when workers come [default: --workers, with --min-workers]")
      ->check(CLI::Range(int64_t{1}, most));
  command
      .add_option("--regroup-timeout", flags.regroup_timeout,
                  "Elastic job: seconds that workers are waited for when one was lost or others have come")
      ->check(CLI::Range(0.1, 1e6))
      ->capture_default_str();
  command.add_option("--job", flags.job, "Name of the job")->capture_default_str();
  command.add_option(
      "--bandwidth", flags.bandwidth,
      "Of each machine, each way: 25Gbit, 200Mbit, ... [default: what each says itself; else links count as equal]");
  command.add_option("--worker-bandwidths", flags.worker_bandwidths, "One for each worker: 25Gbit,10Gbit,...");
  command.add_option("--summer-bandwidths", flags.summer_bandwidths, "One for each summer: 25Gbit,10Gbit,...");
  command.add_option("--partition-bytes", flags.partition_bytes,
                     "Largest partition, up to 4MiB [default: as for `gleaner plan`]");
  command.add_option("--start-timeout", flags.start_timeout, "Seconds until every member must have joined")
      ->check(CLI::Range(0.1, 1e6))
      ->capture_default_str();
  command.add_option("--deadline", flags.deadline, "Seconds that a silent member is waited for")
      ->check(CLI::Range(0.1, 1e6))
      ->capture_default_str();
  command
      .add_option("--declare-timeout", flags.declare_timeout,
                  "Seconds that ranks wait for each other: for a tensor that others, which wait too, have not begun")
      ->check(CLI::Range(0.1, 1e6))
      ->capture_default_str();
  command.add_option("--summary", flags.summary, "Write what the job did as JSON to this file");
  command.add_option("--metrics", flags.metrics, "Serve Prometheus metrics of the coordinator on HOST:PORT");
  command.add_option("--log-level", flags.log_level, "debug, info, warning, error or off")
      ->envname("GLEANER_LOG_LEVEL")
      ->capture_default_str();
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
  if (!flags.bandwidth.empty()) {
    const auto bandwidth = parse_bits_per_second(flags.bandwidth);
    if (!bandwidth.ok()) return absl::InvalidArgumentError(absl::StrCat("--bandwidth: ", bandwidth.status().message()));
    options.bits_per_second = *bandwidth;
  }
  GLN_ASSIGN_OR_RETURN(options.worker_bits_per_second,
                       parse_bandwidths("--worker-bandwidths", flags.worker_bandwidths));
  GLN_ASSIGN_OR_RETURN(options.summer_bits_per_second,
                       parse_bandwidths("--summer-bandwidths", flags.summer_bandwidths));
  if (!flags.partition_bytes.empty()) {
    const auto bytes = parse_bytes(flags.partition_bytes);
    if (!bytes.ok() || *bytes == 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--partition-bytes: ", bytes.ok() ? "0 is no size; leave it out for the default" : bytes.status().message()));
    }
    options.partition_bytes = *bytes;
  }
  options.regroup_timeout = absl::Seconds(flags.regroup_timeout);
  options.start_timeout = absl::Seconds(flags.start_timeout);
  options.deadline = absl::Seconds(flags.deadline);
  options.declare_timeout = absl::Seconds(flags.declare_timeout);
  GLN_RETURN_IF_ERROR(coordinator::validate(options));
  return options;
}

}  // namespace gleaner::cli
