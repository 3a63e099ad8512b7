// ProgressLine shows the progress of a job on standard error. On a terminal it keeps one line at the bottom up to date;
// elsewhere it writes a line every minute.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace gleaner::launcher {

class ProgressLine {
 public:
  // `text` returns the line to show; an empty one is not shown. `columns`: width of the terminal; 0: no terminal.
  ProgressLine(int descriptor, unsigned columns, std::function<std::string(absl::Duration now)> text);

  // Shows the line if it is due.
  void update(absl::Duration now);
  // Removes the line from the terminal. To be called before other text is written there.
  void hide();

  static constexpr absl::Duration kTerminalEvery = absl::Seconds(1);
  static constexpr absl::Duration kElseEvery = absl::Minutes(1);

 private:
  void put(absl::string_view text) const;

  const int descriptor_;
  const unsigned columns_;
  const std::function<std::string(absl::Duration now)> text_;
  std::optional<absl::Duration> next_;
  bool shown_ = false;
};

// Returns the number of columns of the terminal that the descriptor refers to; 0: it does not refer to a terminal.
unsigned terminal_columns(int descriptor);

}  // namespace gleaner::launcher
