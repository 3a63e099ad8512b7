#include "common/kube/object.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace gleaner::kube {
namespace {

using nlohmann::json;

// Builds the value while the parser reads the text, and leaves out metadata.managedFields.
class LeanReader : public nlohmann::json_sax<json> {
 public:
  bool null() override { return place(nullptr); }
  bool boolean(bool value) override { return place(value); }
  bool number_integer(number_integer_t value) override { return place(value); }
  bool number_unsigned(number_unsigned_t value) override { return place(value); }
  bool number_float(number_float_t value, const string_t& /*text*/) override { return place(value); }
  bool string(string_t& value) override { return place(std::move(value)); }
  bool binary(binary_t& value) override { return place(std::move(value)); }
  bool start_object(size_t /*size*/) override { return open(json::object()); }
  bool start_array(size_t /*size*/) override { return open(json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    if (skipped_depth_ > 0) return true;
    Level& level = levels_.back();
    skip_next_ = level.is_metadata && name == "managedFields";
    next_is_metadata_ = name == "metadata";
    if (!skip_next_) slot_ = &(*level.value)[name];
    return true;
  }
  bool parse_error(size_t position, const std::string& /*token*/, const json::exception& error) override {
    problem_ = absl::StrCat("expected JSON; at byte ", position, ": ", error.what());
    return false;
  }

  absl::StatusOr<json> take(bool parsed) {
    if (!parsed) return absl::InvalidArgumentError(problem_);
    return std::move(root_);
  }

 private:
  struct Level {
    json* value;
    bool is_metadata;
  };

  json* put(json value) {
    if (levels_.empty()) return &(root_ = std::move(value));
    json* parent = levels_.back().value;
    if (parent->is_array()) {
      parent->push_back(std::move(value));
      return &parent->back();
    }
    return &(*slot_ = std::move(value));
  }
  template <typename Value>
  bool place(Value&& value) {
    if (skipped_depth_ == 0 && !std::exchange(skip_next_, false)) put(json(std::forward<Value>(value)));
    return true;
  }
  bool open(json value) {
    if (skipped_depth_ > 0 || std::exchange(skip_next_, false)) {
      ++skipped_depth_;
      return true;
    }
    const bool is_metadata = std::exchange(next_is_metadata_, false) && value.is_object();
    levels_.push_back({put(std::move(value)), is_metadata});
    return true;
  }
  bool close() {
    if (skipped_depth_ > 0) {
      --skipped_depth_;
    } else {
      levels_.pop_back();
    }
    return true;
  }

  json root_;
  std::vector<Level> levels_;  // only the innermost level grows, so the pointers stay valid
  json* slot_ = nullptr;
  size_t skipped_depth_ = 0;
  bool skip_next_ = false;
  bool next_is_metadata_ = false;
  std::string problem_;
};

}  // namespace

const json* find(const json& object, std::initializer_list<const char*> path) {
  const json* value = &object;
  for (const char* key : path) {
    if (!value->is_object()) return nullptr;
    const auto found = value->find(key);
    if (found == value->end()) return nullptr;
    value = &*found;
  }
  return value;
}

std::string text_at(const json& object, std::initializer_list<const char*> path) {
  const json* value = find(object, path);
  return value != nullptr && value->is_string() ? value->get_ref<const std::string&>() : std::string();
}

std::string key_of(absl::string_view ns, absl::string_view name) {
  return ns.empty() ? std::string(name) : absl::StrCat(ns, "/", name);
}

std::string key_of(const json& object) { return key_of(namespace_of(object), name_of(object)); }

absl::StatusOr<json> parse_object(absl::string_view text) {
  LeanReader reader;
  const bool parsed = json::sax_parse(text.begin(), text.end(), &reader);
  return reader.take(parsed);
}

std::string to_text(const json& object) { return object.dump(-1, ' ', false, json::error_handler_t::replace); }

}  // namespace gleaner::kube
