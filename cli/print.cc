#include "cli/print.h"

#include <cstdio>

namespace gleaner::cli {

absl::Status print(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    return absl::UnavailableError("cannot write to standard output");
  }
  return absl::OkStatus();
}

}  // namespace gleaner::cli
