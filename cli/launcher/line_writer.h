// Passes on what a process writes, whole lines at a time, each with the process's name in front: lines of several
// processes never mix.
//
// A carriage return ends a line, too, and is passed on: that is how progress bars write over their own line. Such a bar
// often has its carriage return in front, so that its end comes with the next one only: a line that follows a carriage
// return is shown after kProgressDelay even if it has no end yet.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace gleaner::launcher {

// Our standard output or standard error, which all processes of the job share. Once a write has failed, nothing more is
// written.
class OutputStream {
 public:
  explicit OutputStream(int descriptor) : descriptor_(descriptor) {}  // stays the caller's

  void write(absl::string_view text);
  // Of the write that failed: errno; 0: none did.
  int error() const { return error_; }

 private:
  const int descriptor_;
  int error_ = 0;
};

class LineWriter {
 public:
  // To `stream`, which outlives the writer. An empty prefix: none.
  LineWriter(OutputStream* stream, std::string prefix) : stream_(stream), prefix_(std::move(prefix)) {}

  void write(absl::string_view text, absl::Duration now);
  // Whether show_progress() would write something.
  bool has_progress(absl::Duration now) const;
  // Passes on a progress bar that has stood for kProgressDelay.
  void show_progress(absl::Duration now);
  // The last line, if it has no end yet.
  void flush();

  // A line longer than this is passed on in pieces.
  static constexpr size_t kLongestLine = 64 << 10;
  static constexpr absl::Duration kProgressDelay = absl::Milliseconds(200);

 private:
  // Where the line of partial_ ends that starts at `begin` and has no end before `searched`; npos: it has none yet.
  size_t line_end(size_t begin, size_t searched) const;

  OutputStream* const stream_;
  const std::string prefix_;
  std::string partial_;
  absl::Duration written_at_;
  bool overwrites_ = false;  // partial_ follows a carriage return
};

}  // namespace gleaner::launcher
