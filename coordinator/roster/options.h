// The options of a job's coordinator, set once before it starts.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/plan/plan.h"
#include "common/strategy/strategy.h"

namespace gleaner::strategy {
struct JobNetwork;
}

namespace gleaner::coordinator {

// The bandwidth that plans assume for every link if none is known. Sizes of partitions and windows follow from it.
inline constexpr double kAssumedBitsPerSecond = 10e9;

// The times of the counts of push_pulls (push_pull_counts.h). The defaults suit jobs whose push_pulls take milliseconds
// and more.
struct PushPullCountTimes {
  absl::Duration apart = absl::Milliseconds(500);  // between the first answer and the second question
  absl::Duration ask_again = absl::Seconds(2);     // without an answer
  absl::Duration fresh = absl::Milliseconds(500);  // after which counts are too old
  // Within this time a plan is proposed, committed, and taken up by all workers.
  absl::Duration change_lead = absl::Milliseconds(500);
};

struct Options {
  std::string job = "default";
  uint32_t workers = 1;      // n
  uint32_t summers = 0;      // k
  uint32_t local_ranks = 1;  // g
  // The indices of workers and summers, which are the numbers in the names of processes and pods; one for each. Empty:
  // 0 to n - 1, and 0 to k - 1.
  struct Indices {
    std::vector<uint32_t> workers, summers;
  };
  Indices indices;
  // The least and the most workers of an elastic job (rounds.h), whose first round has `workers` and `summers`. 0 and
  // 0: n is fixed.
  uint32_t min_workers = 0;
  uint32_t max_workers = 0;
  // Bandwidths: a member's entry in its list, else bits_per_second, else the member's own figure. If a member has none
  // of these, plans assume the median of the other members, and there is no bound and no efficiency.
  double bits_per_second = 0;                  // 0: not given
  std::vector<double> worker_bits_per_second;  // empty, or one for each worker; 0: unknown
  std::vector<double> summer_bits_per_second;
  uint64_t partition_bytes = 0;  // 0: plan::default_partition_bytes()
  // How tensors are summed.
  struct Reduction {
    strategy::Strategy strategy;
    // The network in which Auto chooses, with the rank maps of its schedules. Null: the members are on one switch, and
    // worker i has rank i. Must be null for elastic jobs.
    std::shared_ptr<const strategy::JobNetwork> network;
    // The class of the bits of all sums (docs/strategies.md#the-bits). None: RankOrder for Auto, otherwise the class of
    // the strategy. RankOrder does not go with a schedule of class Schedule.
    std::optional<plan::Bits> bits;
    PushPullCountTimes count_times;  // of the counts with which Auto changes strategies in a running job
  };
  Reduction reduction;
  absl::Duration start_timeout = absl::Seconds(60);  // within which all members must join
  absl::Duration deadline = absl::Seconds(10);       // of a silent rank, and of acknowledgements of a plan
  absl::Duration return_timeout;  // within which a rank whose stream broke must return; 0: it is lost immediately
  // The launcher, `gleaner run`, that starts the members and observes their processes.
  struct Launcher {
    // Within this time the launcher reports the exit of a lost rank's process (Core::on_exited()); then the job fails.
    // 0: there is no launcher, or it reports none. Must be 0 for elastic jobs.
    absl::Duration exit_timeout;
    bool has_hosts_file = false;  // members have the addresses in the file of --hosts
  };
  Launcher launcher;
  // A CPU summer that is silent, or whose stream is broken, for this long is lost. The job goes on without it.
  absl::Duration summer_timeout = absl::Seconds(1);
  // An optional plan (core.h) that a member has not acknowledged after this time is withdrawn.
  absl::Duration change_timeout = absl::Seconds(2);
  // The workers of a round that has ended join again within this time. Then the next round begins without missing
  // workers.
  absl::Duration regroup_timeout = absl::Seconds(30);
  // The limits of ranks that do not take part in a sum.
  struct DeclareTimeouts {
    // Ranks may wait for each other for this long before the job fails: for a tensor that other ranks have not
    // declared, or for a push_pull that other ranks have not begun, while those ranks wait for sums themselves.
    absl::Duration waiting = absl::Seconds(60);
    // A rank that has not declared a tensor this long after another rank fails the job, also if it is busy, for example
    // with loading a checkpoint. None: a busy rank only causes a warning.
    std::optional<absl::Duration> busy;
  };
  DeclareTimeouts declare_timeouts;

  bool is_elastic() const { return max_workers > 0; }
};

// Returns the class of the bits of sums with these options.
plan::Bits bits_of(const Options::Reduction& reduction);

// Returns OK, or InvalidArgument with the option that is out of range.
absl::Status validate(const Options& options);

}  // namespace gleaner::coordinator
