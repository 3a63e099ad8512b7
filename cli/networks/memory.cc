#include "cli/networks/memory.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/file.h"
#include "common/base/units.h"

namespace gleaner::cli {

std::optional<uint64_t> available_memory(absl::string_view meminfo) {
  for (absl::string_view line : absl::StrSplit(meminfo, '\n')) {
    if (!absl::ConsumePrefix(&line, "MemAvailable:")) continue;
    uint64_t kibibytes = 0;
    absl::ConsumeSuffix(&line, "kB");
    if (absl::SimpleAtoi(absl::StripAsciiWhitespace(line), &kibibytes)) return kibibytes * 1024;
  }
  return std::nullopt;
}

absl::Status check_memory(absl::string_view run, double bytes, absl::string_view advice) {
  const auto meminfo = read_file("/proc/meminfo", "the memory of this machine");
  const std::optional<uint64_t> available = meminfo.ok() ? available_memory(*meminfo) : std::nullopt;
  if (!available || bytes <= static_cast<double>(*available)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(run, " needs about ", format_bytes(bytes),
                                                 " of memory; this machine has ",
                                                 format_bytes(static_cast<double>(*available)), " left. ", advice));
}

}  // namespace gleaner::cli
