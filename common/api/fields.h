// Fields reads the fields of a JSON object into plain values, and reports the first wrong field by its path.
//
// All readers of one document share a status, which gets the first wrong field ("spec.workers.replicas: expected a
// whole number from 1 to 4096, got \"four\""). After that, reads change nothing. A field that is absent or null leaves
// the value unchanged. Fields ignores all fields that no reader asks for. The document and the status must outlive the
// readers.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace gleaner::api {

// The names of an enum's values in JSON.
template <class Enum>
using Names = absl::Span<const std::pair<absl::string_view, Enum>>;

template <class Enum>
absl::string_view name_in(Names<Enum> names, Enum value) {
  for (const auto& [name, named] : names) {
    if (named == value) return name;
  }
  return "";
}

class Fields {
 public:
  static constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

  // Messages begin with `path`; it is empty for a whole document.
  Fields(const nlohmann::json& value, std::string path, absl::Status& status);

  // Returns null if the field is absent or an earlier field was wrong.
  const nlohmann::json* find(absl::string_view name) const;
  Fields object(absl::string_view name) const;  // without fields if the field is absent
  bool present() const { return object_ != nullptr; }

  void text(absl::string_view name, std::string& value) const;
  void flag(absl::string_view name, bool& value) const;
  void json_object(absl::string_view name, nlohmann::json& value) const;
  void texts(absl::string_view name, std::vector<std::string>& values) const;
  void text_map(absl::string_view name, std::map<std::string, std::string>& value) const;
  void time(absl::string_view name, absl::Time& value) const;
  void time(absl::string_view name, std::optional<absl::Time>& value) const;
  void seconds(absl::string_view name, int64_t least, absl::Duration& value) const;
  void seconds(absl::string_view name, int64_t least, std::optional<absl::Duration>& value) const;
  void decimal(absl::string_view name, double& value) const;    // a string: "0.972"
  void quantity(absl::string_view name, double& value) const;   // "250m", "512Mi", or a whole number
  void bandwidth(absl::string_view name, double& value) const;  // "25Gbit": bits per second
  void whole(absl::string_view name, double& value) const;      // a whole number >= 0
  void micros(absl::string_view name, double& seconds) const;   // a whole number of microseconds >= 0
  void nanos(absl::string_view name, double& seconds) const;    // a whole number of nanoseconds >= 0

  template <class Integer>
  void number(absl::string_view name, Integer& value, int64_t least = 0, int64_t most = kMost) const {
    constexpr auto kLimit = static_cast<uint64_t>(std::numeric_limits<Integer>::max());
    if (kLimit < static_cast<uint64_t>(most)) most = static_cast<int64_t>(kLimit);
    if (const std::optional<int64_t> read = read_number(name, least, most)) value = static_cast<Integer>(*read);
  }

  // Replaces `values` by the elements of a list of whole numbers.
  template <class Integer>
  void numbers(absl::string_view name, std::vector<Integer>& values, int64_t least = 0) const {
    numbers(name, values, least, int64_t{std::numeric_limits<Integer>::max()});
  }
  template <class Integer>
  void numbers(absl::string_view name, std::vector<Integer>& values, int64_t least, int64_t most) const {
    const nlohmann::json* found = find_list(name);
    if (found == nullptr) return;
    values.clear();
    for (size_t i = 0; i < found->size(); ++i) {
      const std::string element = absl::StrCat(name, "[", i, "]");
      const std::optional<int64_t> read = checked_number((*found)[i], element, least, most);
      if (!read.has_value()) return;
      values.push_back(static_cast<Integer>(*read));
    }
  }

  template <class Enum>
  void choice(absl::string_view name, Names<Enum> names, Enum& value) const {
    std::string read;
    text(name, read);
    if (read.empty() && find(name) == nullptr) return;
    std::string known;
    for (const auto& [known_name, known_value] : names) {
      if (read == known_name) value = known_value;
      if (read == known_name) return;
      absl::StrAppend(&known, known.empty() ? "" : ", ", known_name);
    }
    wrong(name, absl::StrCat("one of ", known));
  }

  template <class Enum>
  void choice(absl::string_view name, Names<Enum> names, std::optional<Enum>& value) const {
    if (find(name) == nullptr) return;
    value.emplace();
    choice(name, names, *value);
  }

  // Replaces `values` by the elements of a list of objects, each read by read(Fields, Element&).
  template <class Element, class Read>
  void list(absl::string_view name, std::vector<Element>& values, Read read) const {
    const nlohmann::json* found = find_list(name);
    if (found == nullptr) return;
    values.clear();
    for (size_t i = 0; i < found->size(); ++i) {
      const Fields element((*found)[i], absl::StrCat(path_of(name), "[", i, "]"), *status_);
      Element value{};
      read(element, value);
      values.push_back(std::move(value));
    }
  }

  // Reports that the field's value is wrong. `expected` describes a valid value.
  void wrong(absl::string_view name, absl::string_view expected) const;
  // Reports that the field is missing, or contradicts other fields.
  void fail(absl::string_view name, absl::string_view why) const;

 private:
  Fields(std::string path, absl::Status& status) : path_(std::move(path)), status_(&status) {}
  std::string path_of(absl::string_view name) const;
  const nlohmann::json* find_list(absl::string_view name) const;
  // Returns a whole number within the limits; nullopt otherwise, with an error that names `name`.
  std::optional<int64_t> checked_number(const nlohmann::json& value, absl::string_view name, int64_t least,
                                        int64_t most) const;
  std::optional<int64_t> read_number(absl::string_view name, int64_t least, int64_t most) const;

  const nlohmann::json* object_ = nullptr;
  std::string path_;
  absl::Status* status_;
};

}  // namespace gleaner::api
