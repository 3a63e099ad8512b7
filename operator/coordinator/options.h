// What a coordinator is told about its job, once, before it starts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace gleaner::coordinator {

inline constexpr double kAssumedBitsPerSecond = 10e9;

struct Options {
  std::string job = "default";
  uint32_t workers = 1;      // n
  uint32_t summers = 0;      // k
  uint32_t local_ranks = 1;  // g
  // Bandwidths: a member's entry in its list, else bits_per_second, else what it says itself, else
  // kAssumedBitsPerSecond.
  double bits_per_second = 0;                  // 0: not given
  std::vector<double> worker_bits_per_second;  // empty, or one each
  std::vector<double> summer_bits_per_second;
  uint64_t partition_bytes = 0;                        // 0: plan::default_partition_bytes()
  absl::Duration start_timeout = absl::Seconds(60);    // until every member has joined and has the first plan
  absl::Duration deadline = absl::Seconds(10);         // for a silent member, and for an answer to a plan
  absl::Duration return_timeout;                       // for a member whose stream broke to come back; 0: it is lost
  absl::Duration declare_timeout = absl::Seconds(60);  // from the first rank's declaration of a tensor to the last's
};

// InvalidArgument says which number is out of its range.
absl::Status validate(const Options& options);

}  // namespace gleaner::coordinator
