// The flags of several commands that describe a job's machines, transports and tensors, and functions that parse their
// values. Errors are InvalidArgument and name the flag.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/flags/command.h"
#include "common/plan/plan.h"

namespace gleaner::cli {

// Add --workers, --summers and --local-ranks within the limits of a job. Help ends with `note`.
flags::Flag add_workers_flag(flags::Command& command, int64_t& workers);
flags::Flag add_summers_flag(flags::Command& command, int64_t& summers, const std::string& note = "");
flags::Flag add_local_ranks_flag(flags::Command& command, int64_t& local_ranks, const std::string& note = "");

// The values of --bandwidth, --worker-bandwidths and --summer-bandwidths on the command line.
struct BandwidthFlags {
  std::string each, workers, summers;
};
void add_bandwidth_flags(flags::Command& command, BandwidthFlags& flags, const std::string& help_of_bandwidth);

// The parsed bandwidths, in bits per second.
struct Bandwidths {
  std::optional<double> each;  // of every machine that no list names
  std::vector<double> workers, summers;
};
absl::StatusOr<Bandwidths> parse_bandwidths(const BandwidthFlags& flags);

// Adds --partition-bytes. `default_size` says in the help which size the command chooses without the flag.
void add_partition_bytes_flag(flags::Command& command, std::string& text, const std::string& default_size);
// Returns the value of --partition-bytes; nothing if it was not given.
absl::StatusOr<std::optional<uint64_t>> parse_partition_bytes(const std::string& text);

// Adds --transports, without a default: the library takes GLEANER_TRANSPORTS.
void add_transports_flag(flags::Command& command, std::string& transports);

// Adds --dtype, which accepts the names that parse_data_type() knows (common/base/bytes.h).
flags::Flag add_data_type_flag(flags::Command& command, std::string& type, const std::string& help);

// The values of --tensors and --bytes, of which the user gives one.
struct TensorFlags {
  std::string file, bytes;
};
void add_tensor_flags(flags::Command& command, TensorFlags& flags);
// Reads the tensors, all of this type if one is given; errors of the file are those of tensor_list.h.
absl::StatusOr<std::vector<plan::Tensor>> tensors_of(const TensorFlags& flags,
                                                     std::optional<DataType> type = std::nullopt);

}  // namespace gleaner::cli
