#include "cli/networks/best_rank_map.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/ranks/annealing.h"
#include "common/ranks/hdrm.h"
#include "common/strategy/rank_maps.h"

namespace gleaner::cli {

absl::StatusOr<ranks::RankMap> best_rank_map(const collective::Schedule& schedule, const topology::Network& network,
                                             uint64_t bytes, uint64_t seed,
                                             const std::function<void(double)>& searching) {
  ranks::SearchOptions options;
  options.seed = seed;
  options.seconds_of = strategy::simulated_seconds(schedule, network, bytes, kMostTimedMessages);
  options.go_on = [&](double done) {
    searching(done);
    return true;
  };
  std::optional<ranks::RankMap> hdrm = ranks::hdrm_start(schedule, network.topology);
  if (network.topology.host_count() > ranks::kMaxSearchHosts) {
    if (hdrm) return *std::move(hdrm);
    return absl::InvalidArgumentError(
        absl::StrCat("--rank-map best: the topology has ", network.topology.host_count(), " hosts; a search takes ",
                     ranks::kMaxSearchHosts, " at most. Give --rank-map identity, or on a BiGraph --algorithm hdrm"));
  }
  if (hdrm) options.starts.push_back(*std::move(hdrm));
  absl::StatusOr<ranks::FoundMap> found = ranks::find_rank_map(schedule, network, bytes, options);
  if (found.ok()) return std::move(found->host_of);
  return absl::Status(found.status().code(), absl::StrCat("--rank-map best: ", found.status().message()));
}

}  // namespace gleaner::cli
