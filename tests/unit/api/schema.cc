#include "tests/unit/api/schema.h"

#include <yaml-cpp/yaml.h>

#include <set>

#include "tests/paths.h"

namespace gleaner::api {
namespace {

using nlohmann::json;

class Walker {
 public:
  void visit(const YAML::Node& schema, const json& value, const json::json_pointer& pointer, const std::string& path) {
    if (!schema["description"]) differ(path, "has no description");
    const std::string type = type_of(schema);
    if (path == "spec.workers.template") return;
    if (type == "object") return visit_object(schema, value, pointer, path);
    if (type == "array") return visit_array(schema, value, pointer, path);
    Leaf leaf{.pointer = pointer, .path = path, .type = type};
    if (!fits(type, value)) differ(path, "is of type " + type + " in the schema and is written as " + value.dump());
    if (schema["default"]) leaf.fallback = scalar(schema["default"], type);
    for (const YAML::Node& name : schema["enum"]) leaf.names.push_back(name.as<std::string>());
    leaf.has_least = schema["minimum"].IsDefined();
    leaf.has_most = schema["maximum"].IsDefined();
    if (leaf.has_least) leaf.least = schema["minimum"].as<int64_t>();
    if (leaf.has_most) leaf.most = schema["maximum"].as<int64_t>();
    if (type == "integer" && !leaf.has_least) differ(path, "has no minimum");
    if (schema["minLength"]) leaf.least_characters = schema["minLength"].as<size_t>();
    if (schema["maxLength"]) leaf.most_characters = schema["maxLength"].as<size_t>();
    const bool is_limited = schema["maxLength"] || schema["enum"] || schema["format"] || schema["pattern"];
    if (type == "string" && !is_limited) differ(path, "has no maxLength");
    walk.leaves.push_back(leaf);
  }

  Walk walk;

 private:
  static std::string type_of(const YAML::Node& schema) {
    if (schema["x-kubernetes-int-or-string"]) return "int-or-string";
    if (schema["additionalProperties"]) return "map";
    return schema["type"].as<std::string>();
  }

  static bool fits(const std::string& type, const json& value) {
    if (type == "string") return value.is_string();
    if (type == "integer") return value.is_number_integer();
    if (type == "boolean") return value.is_boolean();
    if (type == "map") return value.is_object();
    return value.is_string() || value.is_number_integer();
  }

  static json scalar(const YAML::Node& node, const std::string& type) {
    if (type == "integer") return node.as<int64_t>();
    if (type == "boolean") return node.as<bool>();
    return node.as<std::string>();
  }

  void visit_object(const YAML::Node& schema, const json& value, const json::json_pointer& pointer,
                    const std::string& path) {
    if (!value.is_object()) return differ(path, "is an object in the schema and is written as " + value.dump());
    std::set<std::string> known;
    for (const auto& property : schema["properties"]) {
      const auto name = property.first.as<std::string>();
      known.insert(name);
      const std::string below = path.empty() ? name : path + "." + name;
      if (path.empty() && name != "spec" && name != "status") continue;
      if (!value.contains(name)) {
        differ(below, "is in the schema, and to_json() does not write it");
      } else {
        visit(property.second, value[name], pointer / name, below);
      }
    }
    for (const auto& entry : value.items()) {
      if (!known.contains(entry.key())) differ(path + "." + entry.key(), "is written, and not in the schema");
    }
  }

  void visit_array(const YAML::Node& schema, const json& value, const json::json_pointer& pointer,
                   const std::string& path) {
    if (!value.is_array() || value.empty()) return differ(path, "should be a list with elements: " + value.dump());
    visit(schema["items"], value[0], pointer / 0, path + "[0]");
  }

  void differ(const std::string& path, const std::string& how) { walk.differences.push_back(path + " " + how); }
};

}  // namespace

Walk walk_schema(const std::string& file, const json& object) {
  const YAML::Node crd = YAML::LoadFile(source_dir() + "/crds/" + file);
  Walker walker;
  walker.visit(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"], object, json::json_pointer(), "");
  return walker.walk;
}

}  // namespace gleaner::api
