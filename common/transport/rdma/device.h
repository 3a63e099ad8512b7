// Which adapters and ports there are, which of them may be used, and why not.
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

// What the user asked for: "mlx5_0", "mlx5_0:1" (port), "mlx5_0:1:3" (index of the GID, too).
struct DeviceChoice {
  std::string device;
  uint8_t port = 0;    // 0: any
  int gid_index = -1;  // -1: the best

  // Several with commas between them; none of an empty text. InvalidArgument says what is wrong.
  static absl::StatusOr<std::vector<DeviceChoice>> parse(absl::string_view text);
};

// A port that can be used.
struct Port {
  std::string device;
  uint8_t port = 1;
  int gid_index = 0;
  bool is_ethernet = true;       // RoCE; false: InfiniBand
  sockaddr_storage address{};    // of the GID; family AF_UNSPEC where it tells none
  int network_bits = 0;          // of the address, that name its network; 0: not known
  uint64_t bits_per_second = 0;  // of its link
  uint32_t mtu_bytes = 0;
  int numa_node = -1;  // the adapter's; -1: not known

  std::string to_string() const;
};

// Whether it still is active.
bool is_active(const Port& port);

// The address that a GID tells; family AF_UNSPEC: none.
sockaddr_storage address_of(const ibv_gid& gid);

// Those of `choices`, or all without any. Each has been tried: its port is active, it has the GID asked for, or a RoCE
// v2 or InfiniBand one, and a few pages could be registered. NotFound: no adapter at all. Unavailable,
// ResourceExhausted: the reasons of all that can't be used. With choices, all of them have to be usable.
absl::StatusOr<std::vector<Port>> usable_ports(const std::vector<DeviceChoice>& choices);

}  // namespace gleaner::transport::rdma
