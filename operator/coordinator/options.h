// The options of a job's coordinator, set once before it starts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace gleaner::coordinator {

// What plans take every link for where nobody said how fast any is: it settles the sizes of partitions and windows.
inline constexpr double kAssumedBitsPerSecond = 10e9;

struct Options {
  std::string job = "default";
  uint32_t workers = 1;      // n
  uint32_t summers = 0;      // k
  uint32_t local_ranks = 1;  // g
  // What processes and pods are called by, where that is not 0 to n - 1, 0 to k - 1; one each.
  std::vector<uint32_t> worker_indices, summer_indices;
  // An elastic job (rounds.h) goes on with this many workers; `workers` and `summers` are those of its first round.
  // 0 and 0: n is fixed.
  uint32_t min_workers = 0;
  uint32_t max_workers = 0;
  // Bandwidths: a member's entry in its list, else bits_per_second, else what it says itself. A member of which none of
  // these is known is taken to be as fast as the median of the others; then there is no bound and no efficiency.
  double bits_per_second = 0;                  // 0: not given
  std::vector<double> worker_bits_per_second;  // empty, or one each; 0: not known
  std::vector<double> summer_bits_per_second;
  uint64_t partition_bytes = 0;                      // 0: plan::default_partition_bytes()
  absl::Duration start_timeout = absl::Seconds(60);  // until every member has joined and has the first plan
  absl::Duration deadline = absl::Seconds(10);       // for a silent member, and for an answer to a plan
  absl::Duration return_timeout;                     // for a worker whose stream broke to come back; 0: it is lost
  // A launcher sees the ranks' processes, and has this long to say how that of a lost one ended (Core::on_exited())
  // before the job fails; 0: there is none. Not of elastic jobs.
  absl::Duration exit_timeout;
  // For a CPU summer that is silent, or whose stream broke: then the job goes on without it.
  absl::Duration summer_timeout = absl::Seconds(1);
  // For answers to a plan that would only make steps faster: then it is given up.
  absl::Duration change_timeout = absl::Seconds(2);
  // An elastic job's: for the workers of a round that has ended to be back. Then the next begins without those missing.
  absl::Duration regroup_timeout = absl::Seconds(30);
  // For which ranks wait for each other: for a tensor that others have not declared, or a push_pull that they have not
  // begun, while these wait for sums themselves. A rank that does something else, such as loading a checkpoint, is
  // warned of and waited for.
  absl::Duration declare_timeout = absl::Seconds(60);

  bool is_elastic() const { return max_workers > 0; }
};

// InvalidArgument says which number is out of its range.
absl::Status validate(const Options& options);

}  // namespace gleaner::coordinator
