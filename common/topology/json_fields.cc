#include "common/topology/json_fields.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/names.h"
#include "common/base/units.h"
#include "common/topology/latency.h"

namespace gleaner::topology {
namespace {

// Returns a value as JSON, shortened for a message. A list or object is only named.
std::string shown(const Json& value) {
  if (value.is_structured()) return value.is_array() ? "a list" : "an object";
  if (value.is_string()) return quote(value.get_ref<const std::string&>());
  return value.dump();
}

absl::Status wrong(Where where, const Json& value, absl::string_view expected) {
  return absl::InvalidArgumentError(absl::StrCat(where(), " is ", shown(value), "; give ", expected));
}

// Returns a hint if the word at `position` is a number that other programs write, but JSON does not have.
absl::string_view hint_at(absl::string_view text, size_t position) {
  size_t begin = std::min(position, text.size());
  while (begin > 0 && (std::isalnum(static_cast<unsigned char>(text[begin - 1])) || text[begin - 1] == '-')) --begin;
  const absl::string_view word = text.substr(begin);
  for (const absl::string_view name : {"NaN", "Inf", "-Inf"}) {
    if (absl::StartsWithIgnoreCase(word, name)) return " (NaN and Infinity are no numbers of JSON; measure again)";
  }
  return "";
}

}  // namespace

absl::StatusOr<Json> parse_json(absl::string_view text) {
  try {
    return Json::parse(text.begin(), text.end());
  } catch (const Json::exception& error) {
    // The text is "[json.exception.parse_error.101] parse error at line 2, ...; last read: ...". Its last part is cut
    // off, since it may contain arbitrary bytes of the file.
    absl::string_view what = error.what();
    what = what.substr(0, what.find("; last read"));
    const auto* syntax = dynamic_cast<const Json::parse_error*>(&error);
    return absl::InvalidArgumentError(absl::StrCat("malformed JSON: ", what.substr(what.find("] ") + 2),
                                                   syntax == nullptr ? "" : hint_at(text, syntax->byte)));
  }
}

absl::Status check_fields(const Json& value, absl::string_view what, std::initializer_list<absl::string_view> required,
                          std::initializer_list<absl::string_view> optional) {
  const auto list = [&] {
    std::vector<absl::string_view> names(required);
    names.insert(names.end(), optional.begin(), optional.end());
    return absl::StrCat("\"", absl::StrJoin(names, "\", \""), "\"");
  };
  if (!value.is_object()) {
    return absl::InvalidArgumentError(absl::StrCat(what, " is ", shown(value), "; give an object with ", list()));
  }
  size_t found = 0;
  for (const absl::string_view name : required) {
    if (!value.contains(std::string(name))) {
      return absl::InvalidArgumentError(absl::StrCat(what, " has no field \"", name, "\""));
    }
    ++found;
  }
  for (const absl::string_view name : optional) found += value.contains(std::string(name));
  if (found == value.size()) return absl::OkStatus();
  for (const auto& [name, unused] : value.items()) {
    const auto is_name = [&name = name](absl::string_view known) { return known == name; };
    if (std::any_of(required.begin(), required.end(), is_name)) continue;
    if (std::any_of(optional.begin(), optional.end(), is_name)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(what, " has the unknown field ", quote(name), "; its fields are ", list()));
  }
  return absl::OkStatus();
}

absl::StatusOr<const Json::array_t*> read_list(const Json& value, absl::string_view what, absl::string_view of_what) {
  if (const auto* list = value.get_ptr<const Json::array_t*>()) return list;
  return absl::InvalidArgumentError(absl::StrCat(what, " is ", shown(value), "; give a list of ", of_what));
}

absl::StatusOr<std::string> read_name(const Json& value, Where where) {
  if (value.is_string() && !value.get_ref<const std::string&>().empty()) return value.get<std::string>();
  return wrong(where, value, "a name");
}

absl::StatusOr<double> read_bandwidth(const Json& value, Where where) {
  if (value.is_number()) {
    const double bandwidth = value.get<double>();
    if (std::isfinite(bandwidth) && bandwidth > 0) return bandwidth;
    return wrong(where, value, "bits per second above 0");
  }
  if (!value.is_string()) return wrong(where, value, "bits per second above 0, for example 25e9 or \"25Gbit\"");
  const auto parsed = parse_bits_per_second(value.get_ref<const std::string&>());
  if (parsed.ok()) return *parsed;
  return wrong(where, value, "bits per second above 0, for example 25e9 or \"25Gbit\"");
}

absl::StatusOr<double> read_latency(const Json& value, Where where) {
  if (value.is_number()) {
    const double microseconds = value.get<double>();
    if (std::isfinite(microseconds) && microseconds >= 0) return seconds_of_microseconds(microseconds);
  }
  return wrong(where, value, "a number of microseconds, 0 or more");
}

}  // namespace gleaner::topology
