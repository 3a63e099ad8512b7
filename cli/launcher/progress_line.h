// How far a job is, on standard error: a line that is kept up to date at the bottom of a terminal, or a line every
// minute where standard error is no terminal.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace gleaner::launcher {

class ProgressLine {
 public:
  // `text` says how far the job is now; empty: there is nothing to say yet. `columns`: of the terminal; 0: there is
  // none.
  ProgressLine(int descriptor, unsigned columns, std::function<std::string(absl::Duration now)> text);

  // Shows the text if it is due.
  void update(absl::Duration now);
  // Takes the line off the terminal: something else is about to be written there.
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

// Columns of the terminal behind a descriptor; 0: it is none.
unsigned terminal_columns(int descriptor);

}  // namespace gleaner::launcher
