#include "common/transport/tcp/socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/limits.h"
#include "common/base/status_macros.h"

namespace gleaner::transport::tcp {
namespace {

absl::StatusOr<Descriptor> open_socket(const Target& target) {
  Descriptor socket(::socket(target.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return absl::UnavailableError(exhausted("can't open a socket", errno).message());
  return socket;
}

// Replaces BBR, if it is the host's default, by another algorithm. BBR paces a connection at the rate that it measured
// before. All connections of a member share one window of bytes in flight, so each is idle most of the time. BBR would
// then spread the next frame over as much time as the last frames took, in small packets.
void avoid_bbr(const Descriptor& socket) {
  std::array<char, 16> name{};
  socklen_t size = name.size() - 1;
  if (getsockopt(socket.get(), IPPROTO_TCP, TCP_CONGESTION, name.data(), &size) != 0) return;
  if (absl::string_view(name.data()) != "bbr") return;
  for (const absl::string_view other : {"cubic", "reno"}) {  // cubic may be restricted to root; reno never is
    if (setsockopt(socket.get(), IPPROTO_TCP, TCP_CONGESTION, other.data(), static_cast<socklen_t>(other.size())) ==
        0) {
      return;
    }
  }
}

}  // namespace

absl::StatusOr<Descriptor> start_connect(const Target& target, const std::string& address) {
  GLN_ASSIGN_OR_RETURN(Descriptor socket, open_socket(target));
  tune(socket);
  if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&target.address), target.size) != 0 &&
      errno != EINPROGRESS) {
    return absl::UnavailableError(exhausted(absl::StrCat("can't connect to ", address), errno).message());
  }
  return socket;
}

absl::Status connect_outcome(const Descriptor& socket, const std::string& address) {
  int error = 0;
  socklen_t size = sizeof(error);
  getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error == 0) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("can't connect to ", address, ": ", std::strerror(error)));
}

std::string peer_address(const Descriptor& socket) {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  if (getpeername(socket.get(), reinterpret_cast<sockaddr*>(&storage), &size) != 0) return "a peer that is gone";
  const auto address = to_address(storage, size);
  return address.ok() ? address->to_string() : "a peer of unknown address";
}

void tune(const Descriptor& socket) {
  const int one = 1;
  setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  avoid_bbr(socket);
}

void pace(const Descriptor& socket, double bits_per_second) {
  const auto bytes_per_second = static_cast<uint64_t>(std::max(1.0, bits_per_second / 8));
  setsockopt(socket.get(), SOL_SOCKET, SO_MAX_PACING_RATE, &bytes_per_second, sizeof(bytes_per_second));
}

}  // namespace gleaner::transport::tcp
