#include "common/base/file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/descriptor.h"

namespace gleaner {
namespace {

// Returns 0, or the system's error.
int write_and_close(Descriptor file, absl::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(file.get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written < 0 ? errno : EIO;
    text.remove_prefix(static_cast<size_t>(written));
  }
  // Devices and pipes have nothing to sync.
  if (::fsync(file.get()) != 0 && errno != EINVAL && errno != ENOTSUP) return errno;
  return ::close(file.release()) == 0 ? 0 : errno;
}

// Returns 0, or the system's error; then the temporary file does not exist.
int write_and_rename(const std::string& temporary, const std::string& path, absl::string_view text, mode_t mode) {
  // A process with the same number may have been killed while it wrote. Its file could have another mode.
  ::unlink(temporary.c_str());
  Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!file.valid()) return errno;
  int error = write_and_close(std::move(file), text);
  if (error == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error != 0) ::unlink(temporary.c_str());
  return error;
}

int write_in_place(const std::string& path, absl::string_view text) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  return file.valid() ? write_and_close(std::move(file), text) : errno;
}

}  // namespace

absl::StatusOr<std::string> read_file(const std::string& path, absl::string_view role) {
  const auto failed = [&] { return absl::ErrnoToStatus(errno, absl::StrCat("can't read ", role, " '", path, "'")); };
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return failed();
  std::string text;
  std::array<char, 16 << 10> piece;
  while (true) {
    const ssize_t got = ::read(file.get(), piece.data(), piece.size());
    if (got == 0) return text;
    if (got > 0) {
      text.append(piece.data(), static_cast<size_t>(got));
    } else if (errno != EINTR) {
      return failed();
    }
  }
}

absl::Status replace_file(const std::string& path, absl::string_view text, absl::string_view role,
                          const ReplaceOptions& options) {
  struct stat existing {};
  const bool in_place = ::lstat(path.c_str(), &existing) == 0 && !S_ISREG(existing.st_mode);
  const std::string temporary =
      options.temporary.empty() ? absl::StrCat(path, ".", ::getpid(), ".tmp") : options.temporary;
  const int error = in_place ? write_in_place(path, text) : write_and_rename(temporary, path, text, options.mode);
  if (error == 0) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("can't write ", role, " '", path, "': ", std::strerror(error)));
}

void write_if_ready(int descriptor, absl::string_view text) {
  pollfd ready = {descriptor, POLLOUT, 0};
  if (::poll(&ready, 1, 0) <= 0 || (ready.revents & POLLOUT) == 0) return;
  [[maybe_unused]] const ssize_t written = ::write(descriptor, text.data(), text.size());
}

}  // namespace gleaner
