#include "coordinator/core/reachability.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/address.h"

namespace gleaner::coordinator {
namespace {

// Returns "HOST" of the endpoints "shm://HOST/PATH".
std::vector<std::string> shared_directories(const std::vector<std::string>& endpoints) {
  std::vector<std::string> directories;
  for (absl::string_view endpoint : endpoints) {
    if (absl::ConsumePrefix(&endpoint, "shm://")) directories.emplace_back(endpoint.substr(0, endpoint.find('/')));
  }
  return directories;
}

std::string name_of(const Identity& member) {
  return absl::StrCat(member.role == Role::kSummer ? "summer" : "worker",
                      member.index.has_value() ? absl::StrCat(" ", *member.index) : "");
}

// Returns an instruction that ends in " with", and goes on with the address that is needed.
std::string remedy_of(const Identity& other, const std::string& name, bool has_hosts_file) {
  if (has_hosts_file) return absl::StrCat("replace the \"address\" of ", name, " in the file of --hosts with");
  if (other.role == Role::kSummer) return "give gleaner-summer there --advertise HOST, or --listen HOST:PORT, with";
  return "set GLEANER_ADDRESS there to HOST:0, with";
}

absl::Status out_of_reach(const std::string& worker, const Identity& other, const std::string& name,
                          bool has_hosts_file) {
  return absl::InvalidArgumentError(
      absl::StrCat(worker, " and ", name, " are on different hosts, and ", name, " says that it is reached at ",
                   other.address, ", which leads each host to itself; ", remedy_of(other, name, has_hosts_file),
                   " an address of that host that others reach"));
}

}  // namespace

bool is_out_of_reach(const Identity& worker, const Identity& other) {
  if (worker.network.empty() || other.network.empty() || worker.network == other.network) return false;
  const auto address = Address::parse(other.address);
  if (!address.ok() || !(is_loopback(address->host) || is_unspecified(address->host))) return false;
  const std::vector<std::string> here = shared_directories(worker.endpoints);
  const std::vector<std::string> there = shared_directories(other.endpoints);
  return std::find_first_of(here.begin(), here.end(), there.begin(), there.end()) == here.end();
}

absl::Status check_reachable(const Roster& roster, const Identity& newcomer, bool has_hosts_file) {
  for (uint32_t seat = 0; seat < roster.ranks(); ++seat) {
    const Seat& worker = roster[seat];
    if (!worker.takes_part() || !is_out_of_reach(worker.identity, newcomer)) continue;
    return out_of_reach(roster.name(seat), newcomer, name_of(newcomer), has_hosts_file);
  }
  return absl::OkStatus();
}

std::vector<OutOfReach> find_out_of_reach(const Roster& roster, const Identity& newcomer, bool has_hosts_file) {
  std::vector<OutOfReach> found;
  if (newcomer.role != Role::kWorker) return found;
  for (uint32_t seat = 0; seat < roster.size(); ++seat) {
    const Seat& other = roster[seat];
    if (!other.takes_part() || !is_out_of_reach(newcomer, other.identity)) continue;
    found.push_back({seat, out_of_reach(name_of(newcomer), other.identity, roster.name(seat), has_hosts_file)});
  }
  return found;
}

}  // namespace gleaner::coordinator
