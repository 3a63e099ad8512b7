#include "cli/self/own_program.h"

#include <system_error>

namespace gleaner::cli {

absl::StatusOr<std::filesystem::path> own_program() {
  std::error_code error;
  std::filesystem::path path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return absl::ErrnoToStatus(error.value(), "can't find the file of this program by /proc/self/exe");
  return path;
}

}  // namespace gleaner::cli
