// Reads the schemas in crds/ along an object that has all fields, and returns a Leaf for each value that is neither an
// object nor a list.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace gleaner::api {

struct Leaf {
  nlohmann::json::json_pointer pointer;  // in the object: /status/nics/0/numaNode
  std::string path;                      // as in messages: status.nics[0].numaNode
  std::string type;                      // string | integer | boolean | int-or-string | map
  nlohmann::json fallback;               // the schema's default; null: none
  std::vector<std::string> names;        // values of an enum
  bool has_least = false, has_most = false;
  int64_t least = 0, most = 0;
  size_t least_characters = 0, most_characters = 0;  // of a text; no most: its enum, format or pattern limits it
};

struct Walk {
  std::vector<Leaf> leaves;
  std::vector<std::string> differences;  // between schema and object, for people
};

// Walks the schema in crds/FILE along `object`. Skips the pod template, whose schema is that of Kubernetes.
Walk walk_schema(const std::string& file, const nlohmann::json& object);

}  // namespace gleaner::api
