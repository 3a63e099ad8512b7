// Where a member can be reached by one transport, as members tell it to each other.
//
// Text forms: "tcp://10.0.0.1:7000", "rdma://10.0.0.1:7000", "shm://HOST/run/shm/gleaner-1.sock". HOST names a
// directory of one machine (directory_id()): two members with the same one see the same directory, wherever each has it
// mounted, so that either can reach a socket in it by its name.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/address.h"

namespace gleaner::transport {

// Best first.
enum class Kind : uint8_t { kInproc, kShm, kRdma, kTcp };
inline constexpr size_t kKinds = 4;
inline constexpr std::array<Kind, 3> kBetweenProcesses = {Kind::kShm, Kind::kRdma, Kind::kTcp};

absl::string_view name_of(Kind kind);                     // "shm"
absl::StatusOr<Kind> parse_kind(absl::string_view name);  // one of kBetweenProcesses; InvalidArgument says which

struct Endpoint {
  Kind kind = Kind::kTcp;
  std::string host;  // shm: whose directory; others: empty
  Address address;   // shm: the socket's absolute path, with port 0

  std::string to_string() const;  // round-trips through parse()
  // InvalidArgument: it is none, or of a kind that this version does not know.
  static absl::StatusOr<Endpoint> parse(absl::string_view text);
  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

// Those of `texts` that this version understands: a later one may know more kinds.
std::vector<Endpoint> parse_endpoints(const std::vector<std::string>& texts);
std::vector<std::string> to_texts(const std::vector<Endpoint>& endpoints);

// The directory's machine (its boot) and what it is there: equal for the same directory seen from two containers, and
// for nothing else. NotFound, PermissionDenied and the like: there is no such directory here.
absl::StatusOr<std::string> directory_id(const std::string& directory);

}  // namespace gleaner::transport
