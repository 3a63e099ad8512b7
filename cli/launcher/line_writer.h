// LineWriter passes on the output of a process in whole lines, each with a prefix that names the process, so that lines
// of several processes never mix.
//
// A carriage return also ends a line and is passed on, because progress bars use it to overwrite their own line. Many
// progress bars write the carriage return before the text, so the end of a line arrives only with the next line. Text
// that follows a carriage return is therefore passed on after kProgressDelay even if its line has no end yet.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace gleaner::launcher {

// Standard output or standard error of the launcher, which all processes of the job share. After a failed write it
// drops all further text.
class OutputStream {
 public:
  explicit OutputStream(int descriptor) : descriptor_(descriptor) {}  // the caller keeps ownership

  void write(absl::string_view text);
  // Returns the errno of the write that failed; 0: none failed.
  int error() const { return error_; }

 private:
  const int descriptor_;
  int error_ = 0;
};

class LineWriter {
 public:
  // Writes to `stream`, which must outlive the writer.
  LineWriter(OutputStream* stream, std::string prefix) : stream_(stream), prefix_(std::move(prefix)) {}

  void write(absl::string_view text, absl::Duration now);
  // Returns whether show_progress() would write text.
  bool has_progress(absl::Duration now) const;
  // Passes on a progress bar that has not changed for kProgressDelay.
  void show_progress(absl::Duration now);
  // Passes on the last line if it has no end yet.
  void flush();

  // A longer line is passed on in pieces.
  static constexpr size_t kLongestLine = 64 << 10;
  static constexpr absl::Duration kProgressDelay = absl::Milliseconds(200);

 private:
  // Returns the end of the line in partial_ that starts at `begin` and is known to have no end before `searched`; npos
  // if it has none yet.
  size_t line_end(size_t begin, size_t searched) const;

  OutputStream* const stream_;
  const std::string prefix_;
  std::string partial_;
  absl::Duration written_at_;
  bool overwrites_ = false;  // the text in partial_ follows a carriage return
};

}  // namespace gleaner::launcher
