#include "common/ranks/rank_map.h"

#include <numeric>

#include "absl/strings/str_cat.h"

namespace gleaner::ranks {

RankMap identity(uint32_t ranks) {
  RankMap host_of(ranks);
  std::iota(host_of.begin(), host_of.end(), 0);
  return host_of;
}

absl::Status check_map(const RankMap& host_of, uint32_t ranks, uint32_t hosts) {
  if (ranks > hosts) {
    return absl::InvalidArgumentError(
        absl::StrCat(ranks, " ranks do not fit on ", hosts, " hosts; a host has one rank at most"));
  }
  if (host_of.size() != ranks) {
    return absl::InvalidArgumentError(
        absl::StrCat("the rank map has ", host_of.size(), " ranks; the schedule has ", ranks));
  }
  std::vector<uint32_t> rank_of(hosts, ranks);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    const uint32_t host = host_of[rank];
    if (host >= hosts) {
      return absl::InvalidArgumentError(
          absl::StrCat("the rank map gives rank ", rank, " to host ", host, "; there are hosts 0 to ", hosts - 1));
    }
    if (rank_of[host] != ranks) {
      return absl::InvalidArgumentError(absl::StrCat("the rank map gives host ", host, " both rank ", rank_of[host],
                                                     " and rank ", rank, "; a host has one rank at most"));
    }
    rank_of[host] = rank;
  }
  return absl::OkStatus();
}

RankMap with_other_hosts(const RankMap& host_of, uint32_t hosts) {
  RankMap order = host_of;
  std::vector<bool> used(hosts, false);
  for (const uint32_t host : host_of) used[host] = true;
  for (uint32_t host = 0; host < hosts; ++host) {
    if (!used[host]) order.push_back(host);
  }
  return order;
}

}  // namespace gleaner::ranks
