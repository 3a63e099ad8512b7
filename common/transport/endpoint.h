// Endpoint is the address at which a member can be reached by one transport. Members tell each other their endpoints as
// text: "tcp://10.0.0.1:7000", "rdma://10.0.0.1:7000" or "shm://HOST/run/shm/gleaner-1.sock".
//
// HOST identifies a directory of one machine (directory_id()). Two members with the same HOST see the same directory,
// even if they have it mounted at different paths, so either can reach a socket in it by the socket's name.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/address.h"

namespace gleaner::transport {

// The transports, best first.
enum class Kind : uint8_t { kInproc, kShm, kRdma, kTcp };
inline constexpr size_t kKinds = 4;
inline constexpr std::array<Kind, 3> kBetweenProcesses = {Kind::kShm, Kind::kRdma, Kind::kTcp};

absl::string_view name_of(Kind kind);                     // "shm"
absl::StatusOr<Kind> parse_kind(absl::string_view name);  // accepts kBetweenProcesses only

struct Endpoint {
  Kind kind = Kind::kTcp;
  std::string host;  // shm: directory_id() of the socket's directory; others: empty
  Address address;   // shm: the socket's absolute path, with port 0

  std::string to_string() const;  // round-trips through parse()
  // InvalidArgument: `text` is not an endpoint, or has a kind that this version does not know.
  static absl::StatusOr<Endpoint> parse(absl::string_view text);
  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

// Returns the endpoints in `texts`. Skips texts that this version does not understand: a peer of a later version may
// offer more kinds.
std::vector<Endpoint> parse_endpoints(const std::vector<std::string>& texts);
std::vector<std::string> to_texts(const std::vector<Endpoint>& endpoints);

// Returns the machine's boot ID with the directory's device and inode. Two containers that see the same directory get
// the same ID, and no other directory has it. Errors such as NotFound: the directory can't be used.
absl::StatusOr<std::string> directory_id(const std::string& directory);

}  // namespace gleaner::transport
