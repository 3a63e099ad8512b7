// What every object of the API server says of itself. Nothing here throws: what is missing, or is no string, is empty.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace gleaner::kube {

// The value at a path of object keys; null: not there.
const nlohmann::json* find(const nlohmann::json& object, std::initializer_list<const char*> path);
std::string text_at(const nlohmann::json& object, std::initializer_list<const char*> path);

inline std::string name_of(const nlohmann::json& object) { return text_at(object, {"metadata", "name"}); }
inline std::string namespace_of(const nlohmann::json& object) { return text_at(object, {"metadata", "namespace"}); }
inline std::string uid_of(const nlohmann::json& object) { return text_at(object, {"metadata", "uid"}); }
inline std::string resource_version_of(const nlohmann::json& object) {
  return text_at(object, {"metadata", "resourceVersion"});
}

// "namespace/name", or "name" of what has no namespace.
std::string key_of(const nlohmann::json& object);
std::string key_of(absl::string_view ns, absl::string_view name);

// JSON of the API server without metadata.managedFields, which nobody here reads and which is half of an object.
// InvalidArgument: no JSON.
absl::StatusOr<nlohmann::json> parse_object(absl::string_view text);

// As JSON text; bytes that are no UTF-8 are replaced.
std::string to_text(const nlohmann::json& object);

}  // namespace gleaner::kube
