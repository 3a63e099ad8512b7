#include "common/base/own_network.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <fstream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/listening.h"
#include "common/base/status_macros.h"

namespace gleaner {

std::string network_id() {
  struct stat found {};
  std::string boot;
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  if (!std::getline(file, boot) || stat("/proc/self/ns/net", &found) != 0) return "";
  return absl::StrCat(boot, ".", absl::Hex(found.st_ino));
}

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};  // gethostname() may leave out the zero behind a long name
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

std::string loopback_host() {
  const bool has_v4 = listen_on({"127.0.0.1", 0}).ok(), has_v6 = !has_v4 && listen_on({"::1", 0}).ok();
  return has_v6 ? "::1" : "127.0.0.1";
}

absl::StatusOr<std::string> source_host(const Address& peer) {
  GLN_ASSIGN_OR_RETURN(const std::vector<SocketAddress> targets, resolve(peer));
  absl::Status status = absl::UnavailableError(absl::StrCat("'", peer.host, "' has no address"));
  for (const SocketAddress& target : targets) {
    const Descriptor socket(::socket(target.address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (socket.valid() && connect(socket.get(), reinterpret_cast<const sockaddr*>(&target.address), target.size) == 0) {
      GLN_ASSIGN_OR_RETURN(Address source, local_address(socket));
      return std::move(source.host);
    }
    status = absl::UnavailableError(absl::StrCat("no route to ", peer.to_string(), ": ", std::strerror(errno)));
  }
  return status;
}

}  // namespace gleaner
