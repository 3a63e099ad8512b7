#include "cli/launcher/progress_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"

namespace gleaner::launcher {
namespace {

constexpr absl::string_view kClear = "\r\x1b[K";  // moves to the start of the line, and erases to its end

}  // namespace

ProgressLine::ProgressLine(int descriptor, unsigned columns, std::function<std::string(absl::Duration now)> text)
    : descriptor_(descriptor), columns_(columns), text_(std::move(text)) {}

void ProgressLine::update(absl::Duration now) {
  const absl::Duration every = columns_ > 0 ? kTerminalEvery : kElseEvery;
  if (!next_.has_value()) next_ = now + every;
  if (now < *next_) return;
  std::string text = text_(now);
  if (text.empty()) {
    next_ = now + kTerminalEvery;  // the job may begin at any time
    return;
  }
  next_ = now + every;
  if (columns_ == 0) return put(text + "\n");
  // hide() could not erase a line that wraps.
  if (text.size() >= columns_) text.resize(columns_ - 1);
  // Ends at the left edge, since the coordinator's log does not call hide().
  put(absl::StrCat(kClear, text, "\r"));
  shown_ = true;
}

void ProgressLine::hide() {
  if (std::exchange(shown_, false)) put(kClear);
}

void ProgressLine::put(absl::string_view text) const {
  // A failed write is ignored, since the job does not depend on the progress line.
  [[maybe_unused]] const ssize_t written = ::write(descriptor_, text.data(), text.size());
}

unsigned terminal_columns(int descriptor) {
  winsize size{};
  if (::isatty(descriptor) == 0) return 0;
  return ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace gleaner::launcher
