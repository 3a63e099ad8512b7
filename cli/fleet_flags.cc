#include "cli/fleet_flags.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/tensor_list.h"
#include "common/base/names.h"
#include "common/base/status_macros.h"
#include "common/base/units.h"
#include "common/plan/partitioner.h"

namespace gleaner::cli {
namespace {

absl::StatusOr<double> parse_bandwidth(absl::string_view flag, absl::string_view text) {
  const auto bandwidth = parse_bits_per_second(text);
  if (!bandwidth.ok()) return absl::InvalidArgumentError(absl::StrCat(flag, ": ", bandwidth.status().message()));
  return *bandwidth;
}

absl::StatusOr<std::vector<double>> parse_list(absl::string_view flag, const std::string& list) {
  std::vector<double> result;
  if (list.empty()) return result;
  for (absl::string_view text : absl::StrSplit(list, ',')) {
    GLN_ASSIGN_OR_RETURN(const double bandwidth, parse_bandwidth(flag, text));
    result.push_back(bandwidth);
  }
  return result;
}

}  // namespace

flags::Flag add_workers_flag(flags::Command& command, int64_t& workers) {
  return command.add_number("--workers", workers, "Worker (GPU) machines, 1 or more")
      .between(int64_t{1}, int64_t{plan::kMaxMembers});
}

flags::Flag add_summers_flag(flags::Command& command, int64_t& summers, const std::string& note) {
  return command.add_number("--summers", summers, absl::StrCat("Summers on CPU machines, 0 or more", note))
      .between(int64_t{0}, int64_t{plan::kMaxMembers});
}

flags::Flag add_local_ranks_flag(flags::Command& command, int64_t& local_ranks, const std::string& note) {
  return command.add_number("--local-ranks", local_ranks, absl::StrCat("Processes (GPUs) of each worker", note))
      .between(int64_t{1}, int64_t{plan::kMaxRanks})
      .show_default();
}

void add_bandwidth_flags(flags::Command& command, BandwidthFlags& flags, const std::string& help_of_bandwidth) {
  command.add_text("--bandwidth", flags.each, help_of_bandwidth);
  command.add_text("--worker-bandwidths", flags.workers, "One for each worker: 25Gbit,10Gbit,...");
  command.add_text("--summer-bandwidths", flags.summers, "One for each summer: 25Gbit,10Gbit,...");
}

absl::StatusOr<Bandwidths> parse_bandwidths(const BandwidthFlags& flags) {
  Bandwidths bandwidths;
  if (!flags.each.empty()) {
    GLN_ASSIGN_OR_RETURN(bandwidths.each, parse_bandwidth("--bandwidth", flags.each));
  }
  GLN_ASSIGN_OR_RETURN(bandwidths.workers, parse_list("--worker-bandwidths", flags.workers));
  GLN_ASSIGN_OR_RETURN(bandwidths.summers, parse_list("--summer-bandwidths", flags.summers));
  return bandwidths;
}

void add_partition_bytes_flag(flags::Command& command, std::string& text, const std::string& default_size) {
  command.add_text("--partition-bytes", text,
                   absl::StrCat("Largest partition, up to 4MiB [default: ", default_size, "]"));
}

absl::StatusOr<std::optional<uint64_t>> parse_partition_bytes(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const auto bytes = parse_bytes(text);
  if (!bytes.ok()) return absl::InvalidArgumentError(absl::StrCat("--partition-bytes: ", bytes.status().message()));
  if (*bytes < plan::kMinPartitionBytes || *bytes > plan::kMaxPartitionBytes) {
    return absl::InvalidArgumentError(absl::StrCat("--partition-bytes: ", quote(text), " is not a size from ",
                                                   plan::kMinPartitionBytes,
                                                   " bytes to 4MiB; omit the flag for the default"));
  }
  return *bytes;
}

void add_transports_flag(flags::Command& command, std::string& transports) {
  command.add_text(
      "--transports", transports,
      "Transports that connections may use: auto, or a list of shm, rdma and tcp from best to worst; a list "
      "without tcp allows no other transport [default: GLEANER_TRANSPORTS, or auto]");
}

flags::Flag add_data_type_flag(flags::Command& command, std::string& type, const std::string& help) {
  return command.add_text("--dtype", type, help).one_of({"fp32", "fp64", "fp16", "bf16", "int32"});
}

void add_tensor_flags(flags::Command& command, TensorFlags& flags) {
  command.add_text("--tensors", flags.file,
                   "JSON file: a list of {\"name\", \"bytes\"} in generation order, with \"dtype\" if wanted");
  command.add_text("--bytes", flags.bytes, "Instead of --tensors: one tensor of this size, 64MiB or 67108864");
}

absl::StatusOr<std::vector<plan::Tensor>> tensors_of(const TensorFlags& flags, std::optional<DataType> type) {
  if (flags.file.empty() == flags.bytes.empty()) {
    return absl::InvalidArgumentError("give either --tensors FILE or --bytes N");
  }
  return flags.file.empty() ? one_tensor(flags.bytes, type) : read_tensors(flags.file, type);
}

}  // namespace gleaner::cli
