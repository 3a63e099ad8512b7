#include "cli/launcher/memory_kills.h"

#include <fstream>
#include <sstream>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace gleaner::launcher {
namespace {

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return absl::StrSplit(text.str(), '\n', absl::SkipEmpty());
}

// Returns the value of oom_kill in a file that consists of lines "name value".
std::optional<uint64_t> counter(const std::string& path) {
  for (const std::string& line : lines_of(path)) {
    absl::string_view value = line;
    uint64_t count = 0;
    if (absl::ConsumePrefix(&value, "oom_kill ") && absl::SimpleAtoi(value, &count)) return count;
  }
  return std::nullopt;
}

}  // namespace

std::optional<uint64_t> memory_kills(const std::string& root) {
  // The lines are "0::/path" for cgroup v2 and "8:memory:/path" for v1.
  for (const std::string& line : lines_of(absl::StrCat(root, "/proc/self/cgroup"))) {
    const std::vector<std::string> fields = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3) continue;
    std::optional<uint64_t> kills;
    if (fields[1].empty()) kills = counter(absl::StrCat(root, "/sys/fs/cgroup", fields[2], "/memory.events"));
    if (fields[1] == "memory") {
      kills = counter(absl::StrCat(root, "/sys/fs/cgroup/memory", fields[2], "/memory.oom_control"));
    }
    if (kills.has_value()) return kills;
  }
  return counter(absl::StrCat(root, "/proc/vmstat"));
}

}  // namespace gleaner::launcher
