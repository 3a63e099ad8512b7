// These functions are in a file of their own, since the kernel's <linux/tcp.h>, the only header with all fields of
// tcp_info, and the C library's <netinet/tcp.h> can't be included together.
#include <linux/tcp.h>
#include <netinet/in.h>

#include <cstddef>

#include "common/transport/tcp/socket.h"

namespace gleaner::transport::tcp {
namespace {

// Returns whether the kernel has filled tcp_info up to `end`, the end of the last field that the caller reads.
bool read_info(const Descriptor& socket, size_t end, tcp_info& info) {
  socklen_t size = sizeof(info);
  return getsockopt(socket.get(), IPPROTO_TCP, TCP_INFO, &info, &size) == 0 && size >= end;
}

}  // namespace

absl::Duration least_round_trip(const Descriptor& socket) {
  tcp_info info{};
  constexpr size_t kNeeded = offsetof(tcp_info, tcpi_min_rtt) + sizeof(info.tcpi_min_rtt);
  const bool known = read_info(socket, kNeeded, info) && info.tcpi_min_rtt != UINT32_MAX;  // all ones: no sample yet
  return known ? absl::Microseconds(info.tcpi_min_rtt) : absl::ZeroDuration();
}

std::optional<Sent> confirmed(const Descriptor& socket) {
  tcp_info info{};
  constexpr size_t kNeeded = offsetof(tcp_info, tcpi_busy_time) + sizeof(info.tcpi_busy_time);
  if (!read_info(socket, kNeeded, info)) return std::nullopt;
  return Sent{info.tcpi_bytes_acked, absl::Microseconds(info.tcpi_busy_time)};
}

}  // namespace gleaner::transport::tcp
