// Functions that decode the bytes of a watch into lines and events. Pure.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/kube/client.h"

namespace gleaner::kube {

// Splits chunks into lines and keeps an incomplete line for the next chunk.
class LineReader {
 public:
  // Calls on_line for every complete line, without its line end, until on_line returns false. Returns whether on_line
  // returned true for all lines.
  bool feed(absl::string_view chunk, const std::function<bool(absl::string_view)>& on_line);

 private:
  std::string tail_;
};

// Parses one line of a watch. An ERROR event becomes the error that it carries: OutOfRange for 410.
absl::StatusOr<WatchEvent> parse_watch_event(absl::string_view line);

}  // namespace gleaner::kube
