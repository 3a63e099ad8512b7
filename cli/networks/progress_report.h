// ProgressReport tells the user of a command that takes long how far its work is: a line on standard error, not before
// two seconds have passed, and at most one a second.
#pragma once

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "common/base/env.h"

namespace gleaner::cli {

class ProgressReport {
 public:
  // `command` begins each line: "gleaner sim". `clock` must outlive the object.
  ProgressReport(const Clock& clock, std::string command);

  // Writes what `text` returns if a line is due. Cheap otherwise, so loops may call it in each turn.
  void update(absl::FunctionRef<std::string()> text);
  // Returns the time since the constructor.
  absl::Duration elapsed() const { return clock_.since_start() - begin_; }

 private:
  const Clock& clock_;
  const std::string command_;
  const absl::Duration begin_;
  absl::Duration next_ = absl::Seconds(2);  // when the next line is due, since begin_
};

}  // namespace gleaner::cli
