#include "common/api/text.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "common/api/meta.h"
#include "common/base/utf8.h"

namespace gleaner::api {
namespace {

constexpr int64_t kFirstSecond = -62135596800;  // start of year 1: RFC 3339 can't express earlier times

}  // namespace

std::string required_text(absl::string_view text, size_t most) {
  return text.empty() ? "unknown" : shortened(text, most);
}

int64_t whole_number(double value) {
  if (!(value > 0)) return 0;
  constexpr auto kMost = std::numeric_limits<int64_t>::max();
  return value >= static_cast<double>(kMost) ? kMost : std::llround(value);
}

std::string cpu_quantity(double cpus) {
  const int64_t thousandths = whole_number(cpus * 1000);
  return thousandths % 1000 == 0 ? absl::StrCat(thousandths / 1000) : absl::StrCat(thousandths, "m");
}

std::string decimal_text(double value) {
  constexpr double kMost = 1e15;  // larger doubles have no exact decimal places
  std::string text = absl::StrFormat("%.6f", value > 0 ? std::min(value, kMost) : 0.0);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string bandwidth_text(double bits_per_second) {
  int64_t number = whole_number(bits_per_second);
  absl::string_view prefix;
  for (const absl::string_view larger : {"k", "M", "G", "T"}) {
    if (number == 0 || number % 1000 != 0) break;
    number /= 1000;
    prefix = larger;
  }
  return absl::StrCat(number, prefix, "bit");
}

std::string indexes_text(const std::vector<uint32_t>& indexes) {
  std::string text;
  for (size_t first = 0, last = 0; first < indexes.size(); first = last + 1) {
    last = first;
    while (last + 1 < indexes.size() && indexes[last + 1] == indexes[last] + 1) ++last;
    absl::StrAppend(&text, text.empty() ? "" : ",", indexes[first]);
    if (last > first) absl::StrAppend(&text, "-", indexes[last]);
  }
  return text;
}

absl::StatusOr<std::vector<uint32_t>> parse_indexes(absl::string_view text, uint32_t limit) {
  std::vector<uint32_t> indexes;
  if (text.empty()) return indexes;
  for (const absl::string_view range : absl::StrSplit(text, ',')) {
    const std::vector<absl::string_view> ends = absl::StrSplit(range, absl::MaxSplits('-', 1));
    uint32_t first = 0, last = 0;
    const bool numbers = absl::SimpleAtoi(ends.front(), &first) && absl::SimpleAtoi(ends.back(), &last);
    if (!numbers || first > last || last >= limit || (!indexes.empty() && first <= indexes.back())) {
      return absl::InvalidArgumentError(
          absl::StrCat("expected ascending indexes below ", limit, " such as 1,3-5, got \"", text, "\""));
    }
    for (uint32_t index = first; index <= last; ++index) indexes.push_back(index);
  }
  return indexes;
}

std::string format_time(absl::Time time) { return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", time, absl::UTCTimeZone()); }

absl::StatusOr<absl::Time> parse_time(absl::string_view text) {
  absl::Time time;
  std::string why;
  const bool dated = text.size() > 4 && text[4] == '-';  // begins with a four-digit year; excludes "infinite-future"
  if (dated && absl::ParseTime(absl::RFC3339_full, text, &time, &why) && absl::ToUnixSeconds(time) >= kFirstSecond) {
    return time;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "'", text, "' is not a time; expected a time such as 2026-01-31T12:00:00Z", why.empty() ? "" : ": ", why));
}

absl::StatusOr<double> parse_quantity(absl::string_view text) {
  const absl::Status wrong =
      absl::InvalidArgumentError(absl::StrCat("'", text, "' is not a quantity; expected for example 250m, 512Mi or 4"));
  const size_t end = text.find_first_not_of("+-.0123456789");
  const absl::string_view digits = text.substr(0, end);
  const absl::string_view suffix = end == absl::string_view::npos ? absl::string_view() : text.substr(end);
  double number = 0;
  if (!absl::SimpleAtod(digits, &number)) return wrong;
  if (suffix.empty()) return number;
  if (suffix.size() == 2 && suffix[1] == 'i') {
    const size_t power = absl::string_view("KMGTPE").find(suffix[0]);
    if (power == absl::string_view::npos) return wrong;
    return std::ldexp(number, 10 * (static_cast<int>(power) + 1));
  }
  if (suffix.size() == 1) {
    constexpr absl::string_view kPrefixes = "num kMGTPE";
    const size_t power = kPrefixes.find(suffix[0]);
    if (suffix[0] == ' ' || power == absl::string_view::npos) return wrong;
    return number * std::pow(1000.0, static_cast<int>(power) - 3);
  }
  int exponent = 0;
  if ((suffix[0] != 'e' && suffix[0] != 'E') || !absl::SimpleAtoi(suffix.substr(1), &exponent)) return wrong;
  const double value = number * std::pow(10.0, exponent);
  if (!std::isfinite(value)) return wrong;
  return value;
}

}  // namespace gleaner::api
