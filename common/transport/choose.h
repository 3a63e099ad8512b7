// Which transport carries what goes from one member to another. Pure.
//
// Members tell their endpoints in order of preference. Who connects goes by its own order, and takes what the other
// has, too.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/transport/endpoint.h"

namespace gleaner::transport {

// What a user wants used, best first.
struct Preferences {
  std::vector<Kind> kinds = {kBetweenProcesses.begin(), kBetweenProcesses.end()};
  // By name: that one of them can't be had is worth a warning. Else whatever is there will do.
  bool named = false;

  // Nothing takes the place of the last one: it is there, or that is an error.
  bool forced() const { return std::find(kinds.begin(), kinds.end(), Kind::kTcp) == kinds.end(); }
  friend bool operator==(const Preferences&, const Preferences&) = default;
};

// "auto" (or nothing): shm, rdma, tcp. "rdma,tcp": these, in that order. A list without tcp is forced: there is no way
// out; "rdma!" is another way to write that, for the last of a list. InvalidArgument says how to write it.
absl::StatusOr<Preferences> parse_preferences(absl::string_view text);

struct Excluded {
  Kind kind;
  std::string why;
  friend bool operator==(const Excluded&, const Excluded&) = default;
};

struct Choice {
  std::vector<Endpoint> order;     // theirs, to be tried one after the other
  std::vector<Excluded> excluded;  // and why not these

  // "shm: ...; rdma: ..."; empty: nothing is excluded.
  std::string why_not() const;
};

// `mine`: in order of preference. Kinds that only one side has, and shared memory of another machine, are excluded.
Choice choose(const std::vector<Endpoint>& mine, const std::vector<Endpoint>& theirs);

}  // namespace gleaner::transport
