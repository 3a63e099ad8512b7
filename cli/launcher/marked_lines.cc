#include "cli/launcher/marked_lines.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace gleaner::launcher {

void MarkedLines::add(absl::string_view part) {
  absl::StrAppend(&text_, part);
  if (has_marker_) return;
  const size_t begin = text_.find(marker_);
  has_marker_ = begin != std::string::npos;
  text_.erase(0, has_marker_ ? begin + marker_.size() : text_.size() - std::min(text_.size(), marker_.size() - 1));
}

std::optional<std::string> MarkedLines::next() {
  const size_t end = has_marker_ ? text_.find('\n') : std::string::npos;
  if (end == std::string::npos) return std::nullopt;
  std::string line = text_.substr(0, end);
  text_.erase(0, end + 1);
  return line;
}

}  // namespace gleaner::launcher
