// Where `gleaner run` starts what: this machine by default, or the hosts of a file.
//
//   {"coordinator": {"address": "10.0.0.254"},
//    "workers": [{"address": "10.0.0.1", "prefix": ["ip", "netns", "exec", "gl0"]}, ...],
//    "summers": [{"address": "10.0.0.101", "prefix": ["ssh", "host9"]}, ...]}
//
// `address` is what others reach the host by; `prefix` is what a command is started with there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace gleaner::launcher {

struct Host {
  std::string address = "127.0.0.1";
  std::vector<std::string> prefix;
};

struct Hosts {
  Host coordinator;  // its prefix is not used: it runs in the launcher itself
  std::vector<Host> workers;
  std::vector<Host> summers;
};

Hosts this_machine(uint32_t workers, uint32_t summers);

// Unavailable: it can't be read; InvalidArgument: it does not say what it should, or has too few hosts.
absl::StatusOr<Hosts> read_hosts(const std::string& path, uint32_t workers, uint32_t summers);

// `arguments` as to be started on this host. Variables are passed by env(1) behind a prefix, which may lead to another
// machine.
std::vector<std::string> on_host(const Host& host, const std::vector<std::string>& variables,
                                 const std::vector<std::string>& arguments);

}  // namespace gleaner::launcher
