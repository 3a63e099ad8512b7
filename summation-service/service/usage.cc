#include "summation-service/service/usage.h"

#include <time.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace gleaner::service {

// The first line is "cpu  user nice system idle iowait irq softirq steal guest guest_nice", in ticks. user and nice
// include the time of guests.
std::optional<Usage> parse_usage(absl::string_view text, double ticks_per_second) {
  const std::vector<absl::string_view> words = absl::StrSplit(text.substr(0, text.find('\n')), ' ', absl::SkipEmpty());
  std::array<double, 7> ticks{};
  if (words.size() <= ticks.size() || words[0] != "cpu") return std::nullopt;
  for (size_t i = 0; i < ticks.size(); ++i) {
    if (!absl::SimpleAtod(words[i + 1], &ticks[i])) return std::nullopt;
  }
  const auto [user, nice, system, idle, iowait, irq, softirq] = ticks;
  Usage usage;
  usage.busy = (user + nice + system + irq + softirq) / ticks_per_second;
  usage.idle = (idle + iowait) / ticks_per_second;
  return usage;
}

std::optional<Usage> read_usage() {
  std::ifstream file("/proc/stat");
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  std::optional<Usage> usage = parse_usage(line, static_cast<double>(sysconf(_SC_CLK_TCK)));
  timespec own{};
  if (!usage.has_value() || clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own) != 0) return std::nullopt;
  usage->own = static_cast<double>(own.tv_sec) + 1e-9 * static_cast<double>(own.tv_nsec);
  return usage;
}

}  // namespace gleaner::service
