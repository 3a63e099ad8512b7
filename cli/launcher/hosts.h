// Hosts are the machines on which `gleaner run` starts coordinator, workers and summers: this machine by default, with
// its loopback address, or the hosts that a JSON file lists:
//
//   {"coordinator": {"address": "10.0.0.254"},
//    "workers": [{"address": "10.0.0.1", "prefix": ["ip", "netns", "exec", "gl0"]}, ...],
//    "summers": [{"address": "10.0.0.101", "prefix": ["ssh", "host9"]}, ...]}
//
// Other members reach a host at its `address`. `prefix` is put in front of each command, so that it runs on that host.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/address.h"

namespace gleaner::launcher {

struct Host {
  std::string address;
  std::vector<std::string> prefix;
};

struct Hosts {
  Host coordinator;  // its prefix is not used, since the coordinator runs in the launcher's process
  std::vector<Host> workers;
  std::vector<Host> summers;
};

Hosts this_machine(uint32_t workers, uint32_t summers);

// Reads a file of hosts. Errors: those of read_file(), and InvalidArgument if the file does not have the format above
// or has too few hosts.
absl::StatusOr<Hosts> read_hosts(const std::string& path, uint32_t workers, uint32_t summers);

// Returns a warning if the coordinator is at a loopback address and a member seems to be on another host: the member
// has a prefix and another address. Empty: no warning.
std::string warn_of_loopback(const Hosts& hosts, const Address& coordinator);

// Returns the command line that starts `arguments` on this host. If the host has a prefix, which may lead to another
// machine, `variables` are set with env(1) behind the prefix; otherwise the caller must set them.
std::vector<std::string> on_host(const Host& host, const std::vector<std::string>& variables,
                                 const std::vector<std::string>& arguments);

}  // namespace gleaner::launcher
