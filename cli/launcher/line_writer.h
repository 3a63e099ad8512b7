// Passes on what a process writes, whole lines at a time, each with the process's name in front: lines of several
// processes never mix.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace gleaner::launcher {

class LineWriter {
 public:
  // To this descriptor, which stays the caller's. An empty prefix: none.
  LineWriter(int descriptor, std::string prefix) : descriptor_(descriptor), prefix_(std::move(prefix)) {}

  // False when the descriptor takes no more (errno says why).
  bool write(absl::string_view text);
  // The last line, if it has no end yet.
  bool flush();

  // A line longer than this is passed on in pieces.
  static constexpr size_t kLongestLine = 64 << 10;

 private:
  bool put(absl::string_view text);

  const int descriptor_;
  const std::string prefix_;
  std::string partial_;
};

}  // namespace gleaner::launcher
