#include "cli/launcher/line_writer.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace gleaner::launcher {

void OutputStream::write(absl::string_view text) {
  while (!text.empty() && error_ == 0) {
    const ssize_t written = ::write(descriptor_, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EAGAIN) {
      // Another process has made the shared standard output non-blocking, so wait for its reader.
      pollfd ready{descriptor_, POLLOUT, 0};
      ::poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      error_ = errno;
    }
  }
}

size_t LineWriter::line_end(size_t begin, size_t searched) const {
  const size_t end = partial_.find_first_of("\r\n", searched);
  if (end == std::string::npos) return partial_.size() - begin < kLongestLine ? end : partial_.size();
  if (partial_[end] == '\n') return end + 1;
  if (end + 1 == partial_.size()) return std::string::npos;  // a line feed may follow
  return partial_[end + 1] == '\n' ? end + 2 : end + 1;
}

void LineWriter::write(absl::string_view text, absl::Duration now) {
  std::string lines;
  size_t begin = 0;
  const size_t searched = partial_.empty() ? 0 : partial_.size() - 1;  // the last byte may be a carriage return
  absl::StrAppend(&partial_, text);
  written_at_ = now;
  for (size_t end = line_end(0, searched); begin < partial_.size() && end != std::string::npos;
       end = line_end(begin, begin)) {
    const absl::string_view line = absl::string_view(partial_).substr(begin, end - begin);
    overwrites_ = absl::EndsWith(line, "\r");
    const bool has_end = overwrites_ || absl::EndsWith(line, "\n");
    if (line != "\r") absl::StrAppend(&lines, prefix_, line, has_end ? "" : "\n");
    begin = end;
  }
  partial_.erase(0, begin);
  stream_->write(lines);
}

bool LineWriter::has_progress(absl::Duration now) const {
  const bool is_progress = overwrites_ || absl::EndsWith(partial_, "\r");
  return is_progress && !partial_.empty() && now - written_at_ >= kProgressDelay;
}

void LineWriter::show_progress(absl::Duration now) {
  if (!has_progress(now)) return;
  const absl::string_view line = absl::StripSuffix(partial_, "\r");
  if (!line.empty()) stream_->write(absl::StrCat(prefix_, line, "\r"));
  partial_.clear();
  overwrites_ = true;
}

void LineWriter::flush() {
  if (partial_.empty()) return;
  stream_->write(absl::StrCat(prefix_, partial_, "\n"));
  partial_.clear();
}

}  // namespace gleaner::launcher
