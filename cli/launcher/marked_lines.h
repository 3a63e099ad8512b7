// MarkedLines are the lines that a command writes behind a marker. The shell of its host may write a greeting before,
// with or without an end of line, which is dropped. For example, with the marker "m1", "Welcome\nlast login:
// m1\na\nb\n" has the lines "a" and "b". Pure.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace gleaner::launcher {

class MarkedLines {
 public:
  explicit MarkedLines(const std::string& marker) : marker_(marker + "\n") {}

  // Takes the next part of the output.
  void add(absl::string_view part);
  // Returns the next line, without its end; nothing if there is none yet.
  std::optional<std::string> next();
  bool has_marker() const { return has_marker_; }

 private:
  const std::string marker_;
  bool has_marker_ = false;
  std::string text_;  // before the marker: as much of its end as may be a part of the marker
};

}  // namespace gleaner::launcher
