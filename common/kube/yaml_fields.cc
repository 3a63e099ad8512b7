#include "common/kube/yaml_fields.h"

namespace gleaner::kube {

std::string text(const YAML::Node& node, const char* key) {
  const YAML::Node value = node[key];
  return value.IsDefined() && value.IsScalar() ? value.as<std::string>() : std::string();
}

bool is_set(const YAML::Node& node, const char* key) {
  const YAML::Node value = node[key];
  return value.IsDefined() && !value.IsNull();
}

bool is_true(const YAML::Node& node, const char* key) { return node[key].IsDefined() && node[key].as<bool>(false); }

nlohmann::json to_json(const YAML::Node& node) {
  if (node.IsMap()) {
    nlohmann::json object = nlohmann::json::object();
    for (const auto& field : node) object[field.first.as<std::string>()] = to_json(field.second);
    return object;
  }
  if (node.IsSequence()) {
    nlohmann::json array = nlohmann::json::array();
    for (const YAML::Node& item : node) array.push_back(to_json(item));
    return array;
  }
  if (!node.IsScalar()) return nullptr;
  const bool is_quoted = node.Tag() == "!";
  nlohmann::json value = nlohmann::json::parse(node.Scalar(), nullptr, /*allow_exceptions=*/false);
  return is_quoted || value.is_discarded() || value.is_structured() ? nlohmann::json(node.Scalar()) : value;
}

}  // namespace gleaner::kube
