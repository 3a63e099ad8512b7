// Functions that read fields of YAML. A field that is missing, or not of the expected type, reads as empty. yaml-cpp
// may throw YAML::Exception for a node that is no map.
#pragma once

#include <yaml-cpp/yaml.h>

#include <nlohmann/json.hpp>
#include <string>

namespace gleaner::kube {

std::string text(const YAML::Node& node, const char* key);
bool is_set(const YAML::Node& node, const char* key);
bool is_true(const YAML::Node& node, const char* key);

// Returns the node as JSON. A plain scalar that is a JSON number, boolean or null becomes one; any other scalar becomes
// a string.
nlohmann::json to_json(const YAML::Node& node);

}  // namespace gleaner::kube
