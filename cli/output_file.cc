#include "cli/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace gleaner::cli {

absl::Status check_writable(const std::string& flag, const std::string& path) {
  if (path.empty()) return absl::OkStatus();
  const auto cannot = [&](int error) {
    return absl::UnavailableError(absl::StrCat(flag, " ", path, ": it can't be written: ", std::strerror(error)));
  };
  struct stat existing {};
  if (::stat(path.c_str(), &existing) == 0 && S_ISDIR(existing.st_mode)) return cannot(EISDIR);
  // replace_file() writes through a link.
  if (::lstat(path.c_str(), &existing) == 0 && !S_ISREG(existing.st_mode)) {
    return ::access(path.c_str(), W_OK) == 0 ? absl::OkStatus() : cannot(errno);
  }
  const std::string probe = absl::StrCat(path, ".", ::getpid(), ".tmp");
  const int file = ::open(probe.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) return cannot(errno);
  ::close(file);
  ::unlink(probe.c_str());
  return absl::OkStatus();
}

}  // namespace gleaner::cli
