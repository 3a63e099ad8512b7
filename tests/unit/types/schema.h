// The schemas in crds/, flattened along a filled object: one Leaf for everything that is neither object nor list.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace gleaner::types {

struct Leaf {
  nlohmann::json::json_pointer pointer;  // into the object: /status/nics/0/numaNode
  std::string path;                      // as messages name it: status.nics[0].numaNode
  std::string type;                      // string | integer | boolean | int-or-string | map
  nlohmann::json fallback;               // the schema's default; null: none
  std::vector<std::string> names;        // enum
  bool has_least = false, has_most = false;
  int64_t least = 0, most = 0;
};

struct Walk {
  std::vector<Leaf> leaves;
  std::vector<std::string> differences;  // between schema and object, for people
};

// Of crds/FILE, along `object`, except below template, which is Kubernetes' own.
Walk walk_schema(const std::string& file, const nlohmann::json& object);

}  // namespace gleaner::types
