// api_sample KIND prints a filled object. api_sample without an argument reads an object from standard input and
// prints it after parse() and to_json().
#include <iostream>
#include <iterator>
#include <string>

#include "tests/unit/api/samples.h"

namespace gleaner::api {
namespace {

template <class Object>
int print(const absl::StatusOr<Object>& object) {
  if (!object.ok()) {
    std::cerr << object.status().message() << "\n";
    return 1;
  }
  std::cout << to_json(*object).dump() << "\n";
  return 0;
}

int print_again(const nlohmann::json& object) {
  const std::string kind = object.is_object() ? object.value("kind", "") : "";
  if (kind == "TrainingJob") return print(parse_training_job(object));
  if (kind == "NodeProfile") return print(parse_node_profile(object));
  if (kind == "Topology") return print(parse_topology(object));
  if (kind == "ReductionPlan") return print(parse_reduction_plan(object));
  std::cerr << "expected an object of Gleaner; got kind '" << kind << "'\n";
  return 2;
}

int print_filled(const std::string& kind) {
  if (kind == "TrainingJob") return print<TrainingJob>(filled_job());
  if (kind == "NodeProfile") return print<NodeProfile>(filled_profile());
  if (kind == "Topology") return print<Topology>(filled_topology());
  if (kind == "ReductionPlan") return print<ReductionPlan>(filled_plan());
  return print_again({{"kind", kind}});
}

}  // namespace
}  // namespace gleaner::api

int main(int argc, char** argv) {
  if (argc > 1) return gleaner::api::print_filled(argv[1]);
  const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  return gleaner::api::print_again(nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false));
}
