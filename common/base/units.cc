#include "common/base/units.h"

#include <array>
#include <cctype>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"

namespace gleaner {
namespace {

struct Split {
  double number;
  std::string unit;
};

absl::StatusOr<Split> split(absl::string_view text, absl::string_view what, absl::string_view example) {
  text = absl::StripAsciiWhitespace(text);
  size_t end = 0;
  while (end < text.size() && (std::isdigit(static_cast<unsigned char>(text[end])) || text[end] == '.')) ++end;
  Split result{};
  if (end == 0 || !absl::SimpleAtod(text.substr(0, end), &result.number) || !std::isfinite(result.number)) {
    return absl::InvalidArgumentError(absl::StrCat("'", text, "' is not a ", what, "; write for example ", example));
  }
  result.unit = std::string(absl::StripAsciiWhitespace(text.substr(end)));
  return result;
}

}  // namespace

absl::StatusOr<double> parse_bits_per_second(absl::string_view text) {
  constexpr absl::string_view kExample = "25Gbit, 200Mbit or 100000000 (bits per second)";
  auto parts = split(text, "bandwidth", kExample);
  if (!parts.ok()) return parts.status();
  const std::string small = absl::AsciiStrToLower(parts->unit);
  absl::string_view unit = small;
  for (const absl::string_view suffix : {"bit/s", "bit", "bps", "b/s", "b"}) {
    if (!absl::ConsumeSuffix(&unit, suffix)) continue;
    if (parts->unit[unit.size()] == 'b' || absl::StartsWith(suffix, "bit")) break;
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' is in bytes (B), and a bandwidth is in bits; write for example ", kExample));
  }
  double scale = 0;
  if (unit.empty()) scale = 1;
  if (unit == "k") scale = 1e3;
  if (unit == "m") scale = 1e6;
  if (unit == "g") scale = 1e9;
  if (unit == "t") scale = 1e12;
  const double value = parts->number * scale;
  if (scale == 0 || !(value > 0) || !std::isfinite(value)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' is not a bandwidth above zero; write for example ", kExample));
  }
  return value;
}

absl::StatusOr<uint64_t> parse_bytes(absl::string_view text) {
  constexpr absl::string_view kExample = "4MiB, 64KiB or 4096";
  auto parts = split(text, "size", kExample);
  if (!parts.ok()) return parts.status();
  if (absl::EndsWith(parts->unit, "b")) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' is in bits (b), and a size is in bytes (B); write for example ", kExample));
  }
  const std::string small = absl::AsciiStrToLower(parts->unit);
  static constexpr std::array<std::pair<absl::string_view, double>, 14> kUnits = {{{"", 1},
                                                                                   {"b", 1},
                                                                                   {"k", 1024.0},
                                                                                   {"kib", 1024.0},
                                                                                   {"m", 1048576.0},
                                                                                   {"mib", 1048576.0},
                                                                                   {"g", 1073741824.0},
                                                                                   {"gib", 1073741824.0},
                                                                                   {"t", 1099511627776.0},
                                                                                   {"tib", 1099511627776.0},
                                                                                   {"kb", 1e3},
                                                                                   {"mb", 1e6},
                                                                                   {"gb", 1e9},
                                                                                   {"tb", 1e12}}};
  for (const auto& [unit, scale] : kUnits) {
    if (unit != small) continue;
    const double value = parts->number * scale;
    if (value > 9e18 || value != std::floor(value)) break;
    return static_cast<uint64_t>(value);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", text, "' is not a whole number of bytes; write for example ", kExample));
}

std::string format_bits_per_second(double bits_per_second) {
  constexpr std::array<absl::string_view, 5> kPrefixes = {"", "k", "M", "G", "T"};
  size_t prefix = 0;
  while (bits_per_second >= 1000 && prefix + 1 < kPrefixes.size()) {
    bits_per_second /= 1000;
    ++prefix;
  }
  return absl::StrFormat("%.4g %sbit/s", bits_per_second, kPrefixes[prefix]);
}

std::string format_bytes(double bytes) {
  constexpr std::array<absl::string_view, 5> kPrefixes = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t prefix = 0;
  while (bytes >= 1024 && prefix + 1 < kPrefixes.size()) {
    bytes /= 1024;
    ++prefix;
  }
  return prefix == 0 ? absl::StrFormat("%.0f B", bytes) : absl::StrFormat("%.2f %s", bytes, kPrefixes[prefix]);
}

std::string format_bytes_instead_of(double bytes, double others) {
  if (!(others > bytes) || !(bytes > 0)) return format_bytes(bytes);
  return absl::StrFormat("%s instead of %s (%.2f times fewer)", format_bytes(bytes), format_bytes(others),
                         others / bytes);
}

std::string format_seconds(double seconds) {
  if (seconds == 0) return "0 s";
  if (seconds < 1e-3) return absl::StrFormat("%.3g us", seconds * 1e6);
  if (seconds < 1) return absl::StrFormat("%.3g ms", seconds * 1e3);
  return absl::StrFormat("%.4g s", seconds);
}

}  // namespace gleaner
