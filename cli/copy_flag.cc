#include "cli/copy_flag.h"

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/names.h"
#include "common/base/units.h"

namespace gleaner::cli {

void add_copy_flag(flags::Command& command, std::string& text) {
  command.add_text("--copy", text,
                   "Bandwidth of a machine's copies between GPU and CPU memory, each way, as 20GB/s: also print how "
                   "long a step takes with them [default: no copies, gradients are in CPU memory]");
}

absl::StatusOr<std::optional<double>> parse_copy_bandwidth(const std::string& text) {
  if (text.empty()) return std::nullopt;
  // Networks count bits and memory counts bytes, so the value must say which. "20Gb/s" and "20G" do not.
  absl::string_view size = text;
  if (absl::ConsumeSuffix(&size, "/s") && absl::EndsWith(size, "B")) {
    if (const auto bytes = parse_bytes(size); bytes.ok() && *bytes > 0) return static_cast<double>(*bytes);
  } else if (const auto bits = parse_bits_per_second(text); bits.ok() && absl::StrContains(text, "bit")) {
    return *bits / 8;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--copy: ", quote(text), " is not a bandwidth above zero; write for example 20GB/s or 160Gbit"));
}

std::string copy_json(const plan::CopyStage& stage) {
  return nlohmann::ordered_json({{"bytes_per_second", stage.bytes_per_second},
                                 {"bytes", stage.bytes},
                                 {"seconds", stage.seconds},
                                 {"overlapped_seconds", stage.overlapped_seconds},
                                 {"added_seconds", stage.added_seconds},
                                 {"limits", stage.binds()}})
      .dump();
}

}  // namespace gleaner::cli
