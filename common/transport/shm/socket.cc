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
// A younger path may belong to a process that has made the path and does not listen yet.
constexpr time_t kYoungSeconds = 10;

absl::StatusOr<sockaddr_un> to_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat("the path of a Unix socket must have 1 to ",
                                                   sizeof(address.sun_path) - 1, " bytes, '", path, "' has ",
                                                   path.size(), "; choose a shorter directory"));
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

// Tests the path with a socket of another type, which can't be connected to a listener: connect() fails with
// ECONNREFUSED only if no process has the path's socket open.
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

}  // namespace gleaner::transport::shm
