#include "cli/launcher/line_writer.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"

namespace gleaner::launcher {

bool LineWriter::write(absl::string_view text) {
  std::string lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const absl::string_view piece = text.substr(0, end == absl::string_view::npos ? end : end + 1);
    text.remove_prefix(piece.size());
    absl::StrAppend(&partial_, piece);
    if (end == absl::string_view::npos && partial_.size() < kLongestLine) break;
    absl::StrAppend(&lines, prefix_, partial_, end == absl::string_view::npos ? "\n" : "");
    partial_.clear();
  }
  return put(lines);
}

bool LineWriter::flush() {
  if (partial_.empty()) return true;
  const std::string line = absl::StrCat(prefix_, partial_, "\n");
  partial_.clear();
  return put(line);
}

bool LineWriter::put(absl::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor_, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EAGAIN) {
      // Somebody made our standard output non-blocking: wait for its reader.
      pollfd ready{descriptor_, POLLOUT, 0};
      ::poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

}  // namespace gleaner::launcher
