// A watch's bytes, cut into lines and read as events. Pure.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/kube/client.h"

namespace gleaner::kube {

// Keeps what has no end of line yet.
class LineReader {
 public:
  // Calls on_line for every line that is whole now, without its end; stops early when that says false.
  bool feed(absl::string_view chunk, const std::function<bool(absl::string_view)>& on_line);

 private:
  std::string tail_;
};

// One line of a watch. An ERROR event is the error that it tells: OutOfRange for 410.
absl::StatusOr<WatchEvent> parse_watch_event(absl::string_view line);

}  // namespace gleaner::kube
