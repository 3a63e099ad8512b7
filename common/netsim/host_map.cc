#include "common/netsim/host_map.h"

#include <limits>

#include "absl/strings/str_cat.h"

namespace gleaner::netsim {

absl::Status check_hosts(absl::string_view noun, const std::vector<uint32_t>& host_of, size_t count,
                         const topology::Topology& topology) {
  constexpr uint32_t kNobody = std::numeric_limits<uint32_t>::max();
  if (host_of.size() != count) {
    return absl::InvalidArgumentError(
        absl::StrCat("the map has a host for ", host_of.size(), " ", noun, "s; give one for each of ", count));
  }
  std::vector<uint32_t> user(topology.host_count(), kNobody);
  for (uint32_t i = 0; i < host_of.size(); ++i) {
    if (host_of[i] >= topology.host_count()) {
      return absl::InvalidArgumentError(
          absl::StrCat(noun, " ", i, " is at host ", host_of[i], "; there are ", topology.host_count(), " hosts"));
    }
    uint32_t& user_here = user[host_of[i]];
    if (user_here != kNobody) {
      return absl::InvalidArgumentError(absl::StrCat(noun, "s ", user_here, " and ", i, " are at the same host, '",
                                                     topology.name(host_of[i]), "'; each needs a host of its own"));
    }
    user_here = i;
  }
  return absl::OkStatus();
}

}  // namespace gleaner::netsim
