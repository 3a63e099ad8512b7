// This function is in a file of its own, since the kernel's <linux/tcp.h>, the only header with tcpi_min_rtt, and the C
// library's <netinet/tcp.h> can't be included together.
#include <linux/tcp.h>
#include <netinet/in.h>

#include <cstddef>

#include "common/transport/tcp/socket.h"

namespace gleaner::transport::tcp {

absl::Duration least_round_trip(const Descriptor& socket) {
  tcp_info info{};
  socklen_t size = sizeof(info);
  constexpr size_t kNeeded = offsetof(tcp_info, tcpi_min_rtt) + sizeof(info.tcpi_min_rtt);
  const int failed = getsockopt(socket.get(), IPPROTO_TCP, TCP_INFO, &info, &size);
  const bool known = failed == 0 && size >= kNeeded && info.tcpi_min_rtt != UINT32_MAX;  // all ones: no sample yet
  return known ? absl::Microseconds(info.tcpi_min_rtt) : absl::ZeroDuration();
}

}  // namespace gleaner::transport::tcp
