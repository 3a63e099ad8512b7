// Functions that find the machine's RDMA adapters and ports, and say which of them can be used and why the others
// can't.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/transport/rdma/verbs.h"

namespace gleaner::transport::rdma {

// A device that the user named: "mlx5_0", "mlx5_0:1" (with a port) or "mlx5_0:1:3" (with a port and a GID's index).
struct DeviceChoice {
  std::string device;
  uint8_t port = 0;    // 0: any
  int gid_index = -1;  // -1: the best

  // Parses a list separated by commas; an empty text gives an empty list. The message of InvalidArgument names the
  // wrong part.
  static absl::StatusOr<std::vector<DeviceChoice>> parse(absl::string_view text);
};

// A port that can be used.
struct Port {
  std::string device;
  uint8_t port = 1;
  int gid_index = 0;
  bool is_ethernet = true;       // RoCE; false: InfiniBand
  sockaddr_storage address{};    // the IP address of the GID; family AF_UNSPEC: none
  int network_bits = 0;          // of the address's network prefix; 0: not known
  uint64_t bits_per_second = 0;  // of its link
  uint32_t mtu_bytes = 0;
  int numa_node = -1;  // the adapter's; -1: not known

  std::string to_string() const;
};

// Returns whether the port is active now.
bool is_active(const Port& port);

// Returns the IP address that a GID contains; family AF_UNSPEC: none.
sockaddr_storage address_of(const ibv_gid& gid);

// Returns the usable ports of `choices`, or of all devices if `choices` is empty. A usable port is active and has the
// GID that was asked for, or else one of RoCE v2 or InfiniBand. Its device has enough objects and could register 16
// MiB. NotFound: there is no device, or none with a name in `choices`. Unavailable, ResourceExhausted: the message has
// the reasons for which devices can't be used. It is an error if one of `choices` has no usable port.
absl::StatusOr<std::vector<Port>> usable_ports(const std::vector<DeviceChoice>& choices);

}  // namespace gleaner::transport::rdma
