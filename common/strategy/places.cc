#include "common/strategy/places.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/strategy/rack_times.h"
#include "common/topology/subset.h"

namespace gleaner::strategy {
namespace {

// Returns "workers 0 to 7", "summers 0, 2" or "".
std::string numbers(absl::string_view role, const std::vector<uint32_t>& all) {
  std::vector<std::string> ranges;
  for (size_t i = 0, end; i < all.size(); i = end) {
    for (end = i + 1; end < all.size() && all[end] == all[end - 1] + 1;) ++end;
    ranges.push_back(end - i == 1 ? absl::StrCat(all[i]) : absl::StrCat(all[i], " to ", all[end - 1]));
  }
  return all.empty() ? "" : absl::StrCat(role, all.size() > 1 ? "s " : " ", absl::StrJoin(ranges, ", "));
}

std::string name_of_rack(const topology::Topology& topology, const std::vector<uint32_t>& hosts, size_t index) {
  const auto first = topology.only_switch(hosts.front()), last = topology.only_switch(hosts.back());
  const bool is_one_switch = first.has_value() && last.has_value() && first->node == last->node;
  return is_one_switch ? topology.name(first->node) : absl::StrCat("group ", index);
}

}  // namespace

absl::Status check_room(const topology::Topology& topology, uint32_t workers, uint32_t summers) {
  if (topology.host_count() >= uint64_t{workers} + summers) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the topology has ", topology.host_count(), " hosts, and the job ",
                                                 workers, " workers and ", summers,
                                                 " summers; each needs a host of its own"));
}

absl::StatusOr<topology::Topology> balanced(const topology::Topology& topology, uint32_t workers, uint32_t summers) {
  GLN_RETURN_IF_ERROR(check_room(topology, workers, summers));
  const collective::Groups racks = racks_of(topology, topology.host_count());
  if (racks.empty()) return topology;
  std::vector<size_t> taken(racks.size());  // hosts of each rack
  const auto room = [&](size_t rack) { return racks[rack].size() - taken[rack]; };
  for (uint32_t worker = 0; worker < workers; ++worker) {
    size_t least = racks.size();
    for (size_t rack = 0; rack < racks.size(); ++rack) {
      if (room(rack) > 0 && (least == racks.size() || taken[rack] < taken[least])) least = rack;
    }
    ++taken[least];
  }
  std::vector<uint32_t> order;
  for (size_t rack = 0; rack < racks.size(); ++rack) {
    order.insert(order.end(), racks[rack].begin(), racks[rack].begin() + static_cast<std::ptrdiff_t>(taken[rack]));
  }
  for (size_t left = topology.host_count() - order.size(); left > 0; --left) {
    size_t widest = 0;
    for (size_t rack = 1; rack < racks.size(); ++rack) {
      if (room(rack) > room(widest)) widest = rack;
    }
    order.push_back(racks[widest][taken[widest]++]);
  }
  return topology::subset(topology, order);
}

std::string describe_places(const topology::Topology& topology, uint32_t workers, uint32_t summers) {
  const collective::Groups racks = racks_of(topology, workers + summers);
  std::vector<std::string> lines;
  for (size_t rack = 0; rack < racks.size(); ++rack) {
    std::vector<uint32_t> here, helpers;
    for (const uint32_t host : racks[rack]) {
      if (host < workers) here.push_back(host);
      if (host >= workers) helpers.push_back(host - workers);
    }
    std::vector<std::string> parts;
    for (std::string part : {numbers("worker", here), numbers("summer", helpers)}) {
      if (!part.empty()) parts.push_back(std::move(part));
    }
    lines.push_back(absl::StrCat(name_of_rack(topology, racks[rack], rack), ": ", absl::StrJoin(parts, ", ")));
  }
  return absl::StrJoin(lines, "; ");
}

}  // namespace gleaner::strategy
