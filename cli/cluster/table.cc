#include "cli/cluster/table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace gleaner::cli {
namespace {

size_t characters(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

}  // namespace

std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> width;
  for (const auto& row : rows) {
    width.resize(std::max(width.size(), row.size()));
    for (size_t column = 0; column < row.size(); ++column) {
      width[column] = std::max(width[column], characters(row[column]));
    }
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (size_t column = 0; column < row.size(); ++column) {
      absl::StrAppend(&line, row[column], std::string(width[column] + 3 - characters(row[column]), ' '));
    }
    line.erase(line.find_last_not_of(' ') + 1);
    absl::StrAppend(&text, line, "\n");
  }
  return text;
}

std::string age(absl::Time since, absl::Time now) {
  if (since == absl::InfinitePast() || since == absl::UnixEpoch()) return "-";
  const int64_t seconds = std::max(int64_t{0}, absl::ToInt64Seconds(now - since));
  if (seconds < 120) return absl::StrCat(seconds, "s");
  constexpr int64_t kMinute = 60, kHour = 60 * kMinute, kDay = 24 * kHour;
  if (seconds < 2 * kHour) return absl::StrCat(seconds / kMinute, "m");
  if (seconds < 2 * kDay) return absl::StrCat(seconds / kHour, "h");
  return absl::StrCat(seconds / kDay, "d");
}

std::string or_dash(absl::string_view text) { return text.empty() ? "-" : std::string(text); }

}  // namespace gleaner::cli
