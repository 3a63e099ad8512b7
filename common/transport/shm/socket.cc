#include "common/transport/shm/socket.h"

#include <dirent.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <memory>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace gleaner::transport::shm {
namespace {

constexpr absl::string_view kPrefix = "gleaner-";
constexpr absl::string_view kSuffix = ".sock";
// A path that young may be of a process that is about to listen.
constexpr time_t kYoungSeconds = 10;

// Room for one descriptor, aligned as the kernel wants it.
union Control {
  cmsghdr header;
  char space[CMSG_SPACE(sizeof(int))];
};

absl::StatusOr<sockaddr_un> to_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat("the path of a Unix socket has 1 to ", sizeof(address.sun_path) - 1,
                                                   " bytes, '", path, "' has ", path.size(),
                                                   "; choose a shorter directory"));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

absl::StatusOr<Descriptor> open_socket(int type) {
  Descriptor socket(::socket(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return absl::UnavailableError(absl::StrCat("can't open a Unix socket: ", std::strerror(errno)));
  return socket;
}

absl::Status listen_error(int error, const std::string& directory) {
  const std::string what = absl::StrCat("can't make a Unix socket in ", directory, ": ", std::strerror(error));
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return absl::InvalidArgumentError(absl::StrCat(what, "; give a directory that exists"));
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(absl::StrCat(what, "; give a directory that this process may write to"));
    case ENOSPC:
    case EDQUOT:
      return absl::ResourceExhaustedError(absl::StrCat(what, "; make room there, or give another directory"));
    default:
      return absl::ErrnoToStatus(error, what);
  }
}

// Another type of socket can't be connected to it, and the error tells whether anybody has it open.
bool is_abandoned(const std::string& path) {
  struct stat facts {};
  if (lstat(path.c_str(), &facts) != 0 || !S_ISSOCK(facts.st_mode)) return false;
  if (time(nullptr) - facts.st_mtime < kYoungSeconds) return false;
  const auto address = to_address(path);
  const auto socket = open_socket(SOCK_DGRAM);
  if (!address.ok() || !socket.ok()) return false;
  return connect(socket->get(), reinterpret_cast<const sockaddr*>(&*address), sizeof(*address)) != 0 &&
         errno == ECONNREFUSED;
}

void remove_abandoned(const std::string& directory) {
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(opendir(directory.c_str()), &closedir);
  if (entries == nullptr) return;
  while (const dirent* const entry = readdir(entries.get())) {
    if (!absl::StartsWith(entry->d_name, kPrefix) || !absl::EndsWith(entry->d_name, kSuffix)) continue;
    const std::string path = absl::StrCat(directory, "/", entry->d_name);
    if (is_abandoned(path)) unlink(path.c_str());
  }
}

Descriptor attached_to(msghdr& message) {
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) return {};
  int descriptor = -1;
  std::memcpy(&descriptor, CMSG_DATA(header), sizeof(descriptor));
  return Descriptor(descriptor);
}

}  // namespace

absl::StatusOr<Listening> listen_in(const std::string& directory, const Env& env) {
  struct stat facts {};
  if (stat(directory.c_str(), &facts) != 0) return listen_error(errno, directory);
  if (S_ISSOCK(facts.st_mode)) {
    return absl::AlreadyExistsError(absl::StrCat(directory, " is a socket already; give the directory for a new one"));
  }
  remove_abandoned(directory);
  std::array<uint8_t, 8> name{};
  GLN_RETURN_IF_ERROR(env.random->fill(name));
  const absl::string_view name_bytes(reinterpret_cast<const char*>(name.data()), name.size());
  std::string path = absl::StrCat(directory, "/", kPrefix, absl::BytesToHexString(name_bytes), kSuffix);
  GLN_ASSIGN_OR_RETURN(const sockaddr_un address, to_address(path));
  GLN_ASSIGN_OR_RETURN(Descriptor socket, open_socket(SOCK_SEQPACKET));
  if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return listen_error(errno, directory);
  }
  if (chmod(path.c_str(), 0666) != 0 || listen(socket.get(), SOMAXCONN) != 0) {
    const int error = errno;
    unlink(path.c_str());
    return listen_error(error, directory);
  }
  return Listening{std::move(socket), std::move(path)};
}

absl::StatusOr<Descriptor> connect_to(const std::string& path) {
  GLN_ASSIGN_OR_RETURN(const sockaddr_un address, to_address(path));
  GLN_ASSIGN_OR_RETURN(Descriptor socket, open_socket(SOCK_SEQPACKET));
  if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) return socket;
  return absl::UnavailableError(absl::StrCat("can't connect to ", path, ": ", std::strerror(errno)));
}

std::string peer_of(const Descriptor& socket) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  const bool known = getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.pid != 0;
  return known ? absl::StrCat("process ", peer.pid, " of this host") : "a process of this host";
}

int send_packet(const Descriptor& socket, ConstBytes bytes, int attached) {
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  Control control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (attached >= 0) {
    message.msg_control = &control;
    message.msg_controllen = sizeof(control);
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(attached));
    std::memcpy(CMSG_DATA(header), &attached, sizeof(attached));
  }
  ssize_t sent = 0;
  do {
    sent = sendmsg(socket.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  return sent < 0 ? errno : 0;
}

Packet receive_packet(const Descriptor& socket, MutableBytes into) {
  iovec part{into.data(), into.size()};
  Control control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = &control;
  message.msg_controllen = CMSG_LEN(sizeof(int));  // no room for a second one, which nobody would close
  ssize_t size = 0;
  do {
    size = recvmsg(socket.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    // A peer that closed without having read all that we sent is reported once, and its last packets come after that.
  } while (size < 0 && (errno == EINTR || errno == ECONNRESET));
  if (size > 0) return {Packet::Kind::kPacket, static_cast<size_t>(size), attached_to(message)};
  if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return {};
  return {Packet::Kind::kClosed, 0, {}};
}

}  // namespace gleaner::transport::shm
