#include "common/base/file.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "common/base/descriptor.h"

namespace gleaner {

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

void write_if_ready(int descriptor, absl::string_view text) {
  pollfd ready = {descriptor, POLLOUT, 0};
  if (::poll(&ready, 1, 0) <= 0 || (ready.revents & POLLOUT) == 0) return;
  [[maybe_unused]] const ssize_t written = ::write(descriptor, text.data(), text.size());
}

}  // namespace gleaner
