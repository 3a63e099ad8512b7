// Functions that choose the transports by which one member can connect to another. Pure.
//
// Members tell each other their endpoints. The connecting side keeps its own order of preference and takes the kinds
// that the other side offers, too. For example, with shm, rdma, tcp here and tcp, rdma there it tries rdma, then tcp.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/transport/endpoint.h"

namespace gleaner::transport {

// The transports that the user wants, best first.
struct Preferences {
  std::vector<Kind> kinds = {kBetweenProcesses.begin(), kBetweenProcesses.end()};
  // Whether the user named the kinds. A named kind that can't be used is worth a warning.
  bool named = false;

  // Returns whether no other transport may replace the last kind: it is an error if that kind can't be used.
  bool forced() const { return std::find(kinds.begin(), kinds.end(), Kind::kTcp) == kinds.end(); }
  friend bool operator==(const Preferences&, const Preferences&) = default;
};

// Parses the user's choice. "auto" or an empty text: shm, rdma, tcp. "rdma,tcp": these two, in this order. A list
// without tcp is forced(); so is a list whose last name has a "!" behind it ("rdma!"). The message of InvalidArgument
// shows the format.
absl::StatusOr<Preferences> parse_preferences(absl::string_view text);

struct Excluded {
  Kind kind;
  std::string why;
  friend bool operator==(const Excluded&, const Excluded&) = default;
};

struct Choice {
  std::vector<Endpoint> order;     // the peer's endpoints, in the order to try them
  std::vector<Excluded> excluded;  // kinds that can't be used, with reasons

  // Returns "shm: REASON; rdma: REASON"; empty if nothing is excluded.
  std::string why_not() const;
};

// `mine` is in order of preference. Excludes kinds that only one side has, and shared memory if the two sides do not
// see the same directory.
Choice choose(const std::vector<Endpoint>& mine, const std::vector<Endpoint>& theirs);

}  // namespace gleaner::transport
