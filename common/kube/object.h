// Functions that read fields of API objects. They do not throw: a field that is missing, or not a string, reads as
// empty.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace gleaner::kube {

// Returns the value at a path of keys, or null if there is none.
const nlohmann::json* find(const nlohmann::json& object, std::initializer_list<const char*> path);
std::string text_at(const nlohmann::json& object, std::initializer_list<const char*> path);

inline std::string name_of(const nlohmann::json& object) { return text_at(object, {"metadata", "name"}); }
inline std::string namespace_of(const nlohmann::json& object) { return text_at(object, {"metadata", "namespace"}); }
inline std::string uid_of(const nlohmann::json& object) { return text_at(object, {"metadata", "uid"}); }
inline std::string resource_version_of(const nlohmann::json& object) {
  return text_at(object, {"metadata", "resourceVersion"});
}

// Returns "namespace/name", or "name" for an object without a namespace.
std::string key_of(const nlohmann::json& object);
std::string key_of(absl::string_view ns, absl::string_view name);

// Parses JSON of the API server and drops metadata.managedFields, which is half of an object and has no reader in
// Gleaner. InvalidArgument if `text` is not JSON.
absl::StatusOr<nlohmann::json> parse_object(absl::string_view text);

// Returns the object as JSON text. Bytes that are not UTF-8 are replaced.
std::string to_text(const nlohmann::json& object);

}  // namespace gleaner::kube
