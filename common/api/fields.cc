#include "common/api/fields.h"

#include <cmath>

#include "absl/strings/numbers.h"
#include "common/api/meta.h"
#include "common/base/units.h"

namespace gleaner::api {
namespace {

using nlohmann::json;

// Returns the value as JSON, shortened if it is long. Bytes that are not UTF-8 are replaced.
std::string quoted(const json& value) {
  constexpr size_t kMost = 80;
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() > kMost) text = text.substr(0, kMost) + "...";
  return text;
}

const std::string* as_text(const json& value) { return value.get_ptr<const json::string_t*>(); }

}  // namespace

Fields::Fields(const json& value, std::string path, absl::Status& status) : path_(std::move(path)), status_(&status) {
  if (value.is_object()) {
    object_ = &value;
  } else if (status_->ok()) {
    *status_ = absl::InvalidArgumentError(
        absl::StrCat(path_.empty() ? "the document" : path_, ": expected an object, got ", quoted(value)));
  }
}

std::string Fields::path_of(absl::string_view name) const {
  return path_.empty() ? std::string(name) : absl::StrCat(path_, ".", name);
}

const json* Fields::find(absl::string_view name) const {
  if (object_ == nullptr || !status_->ok()) return nullptr;
  const auto found = object_->find(std::string(name));
  return found == object_->end() || found->is_null() ? nullptr : &*found;
}

Fields Fields::object(absl::string_view name) const {
  const json* found = find(name);
  return found == nullptr ? Fields(path_of(name), *status_) : Fields(*found, path_of(name), *status_);
}

void Fields::wrong(absl::string_view name, absl::string_view expected) const {
  const json* found = find(name);
  fail(name,
       absl::StrCat("expected ", expected, found == nullptr ? "" : ", got ", found == nullptr ? "" : quoted(*found)));
}

void Fields::fail(absl::string_view name, absl::string_view why) const {
  if (status_->ok()) *status_ = absl::InvalidArgumentError(absl::StrCat(path_of(name), ": ", why));
}

void Fields::text(absl::string_view name, std::string& value) const {
  const json* found = find(name);
  if (found == nullptr) return;
  const std::string* read = as_text(*found);
  if (read == nullptr) return wrong(name, "a string");
  value = *read;
}

void Fields::flag(absl::string_view name, bool& value) const {
  const json* found = find(name);
  if (found == nullptr) return;
  const bool* read = found->get_ptr<const json::boolean_t*>();
  if (read == nullptr) return wrong(name, "true or false");
  value = *read;
}

void Fields::json_object(absl::string_view name, json& value) const {
  const json* found = find(name);
  if (found == nullptr) return;
  if (!found->is_object()) return wrong(name, "an object");
  value = *found;
}

void Fields::texts(absl::string_view name, std::vector<std::string>& values) const {
  const json* found = find_list(name);
  if (found == nullptr) return;
  values.clear();
  for (size_t i = 0; i < found->size(); ++i) {
    const json& element = (*found)[i];
    if (!element.is_string()) {
      return fail(absl::StrCat(name, "[", i, "]"), absl::StrCat("expected a string, got ", quoted(element)));
    }
    values.push_back(element.get<std::string>());
  }
}

void Fields::text_map(absl::string_view name, std::map<std::string, std::string>& value) const {
  const json* found = find(name);
  if (found == nullptr) return;
  if (!found->is_object()) return wrong(name, "an object");
  const Fields entries = object(name);
  value.clear();
  for (const auto& entry : found->items()) entries.text(entry.key(), value[entry.key()]);
}

void Fields::time(absl::string_view name, absl::Time& value) const {
  std::optional<absl::Time> read;
  time(name, read);
  if (read.has_value()) value = *read;
}

void Fields::time(absl::string_view name, std::optional<absl::Time>& value) const {
  const json* found = find(name);
  if (found == nullptr) return;
  const std::string* text = as_text(*found);
  const absl::StatusOr<absl::Time> read = parse_time(text == nullptr ? "" : *text);
  if (!read.ok()) return wrong(name, "a time such as \"2026-01-31T12:00:00Z\"");
  value = *read;
}

void Fields::seconds(absl::string_view name, int64_t least, absl::Duration& value) const {
  if (const std::optional<int64_t> read = read_number(name, least, kMost)) value = absl::Seconds(*read);
}

void Fields::seconds(absl::string_view name, int64_t least, std::optional<absl::Duration>& value) const {
  if (const std::optional<int64_t> read = read_number(name, least, kMost)) value = absl::Seconds(*read);
}

void Fields::decimal(absl::string_view name, double& value) const {
  const json* found = find(name);
  if (found == nullptr) return;
  const std::string* text = as_text(*found);
  double read = 0;
  if (text == nullptr || !absl::SimpleAtod(*text, &read) || !std::isfinite(read) || read < 0) {
    return wrong(name, "a decimal number in a string, such as \"0.972\"");
  }
  value = read;
}

void Fields::quantity(absl::string_view name, double& value) const {
  const json* found = find(name);
  if (found == nullptr) return;
  const std::string* text = as_text(*found);
  const absl::StatusOr<double> read = text != nullptr              ? parse_quantity(*text)
                                      : found->is_number_integer() ? parse_quantity(found->dump())
                                                                   : absl::InvalidArgumentError("");
  if (!read.ok()) return wrong(name, "a quantity such as \"250m\", \"512Mi\" or 4");
  value = *read;
}

void Fields::bandwidth(absl::string_view name, double& value) const {
  const json* found = find(name);
  if (found == nullptr) return;
  const std::string* text = as_text(*found);
  const absl::StatusOr<double> read = parse_bits_per_second(text == nullptr ? "" : *text);
  if (!read.ok()) return wrong(name, "a bandwidth above zero, such as \"25Gbit\"");
  value = *read;
}

void Fields::whole(absl::string_view name, double& value) const {
  if (const std::optional<int64_t> read = read_number(name, 0, kMost)) value = static_cast<double>(*read);
}

void Fields::micros(absl::string_view name, double& seconds) const {
  if (const std::optional<int64_t> read = read_number(name, 0, kMost)) seconds = static_cast<double>(*read) / 1e6;
}

void Fields::nanos(absl::string_view name, double& seconds) const {
  if (const std::optional<int64_t> read = read_number(name, 0, kMost)) seconds = static_cast<double>(*read) / 1e9;
}

const json* Fields::find_list(absl::string_view name) const {
  const json* found = find(name);
  if (found == nullptr || found->is_array()) return found;
  wrong(name, "a list");
  return nullptr;
}

std::optional<int64_t> Fields::read_number(absl::string_view name, int64_t least, int64_t most) const {
  const json* found = find(name);
  return found == nullptr ? std::nullopt : checked_number(*found, name, least, most);
}

std::optional<int64_t> Fields::checked_number(const json& value, absl::string_view name, int64_t least,
                                              int64_t most) const {
  const bool fits =
      value.is_number_unsigned() ? value.get<uint64_t>() <= static_cast<uint64_t>(kMost) : value.is_number_integer();
  const int64_t read = fits ? value.get<int64_t>() : 0;
  if (fits && least <= read && read <= most) return read;
  fail(name,
       absl::StrCat("expected a whole number ",
                    most == kMost ? absl::StrCat("of at least ", least) : absl::StrCat("from ", least, " to ", most),
                    ", got ", quoted(value)));
  return std::nullopt;
}

}  // namespace gleaner::api
