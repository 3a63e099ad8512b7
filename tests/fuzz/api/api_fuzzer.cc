// Fuzzes the Kubernetes objects by replacing some of their fields: parsing must reject the object, or its result must
// be the same after it is written and parsed again.
#include <fuzzer/FuzzedDataProvider.h>

#include <cstdint>
#include <cstdlib>

#include "tests/unit/api/samples.h"

namespace gleaner::api {
namespace {

using nlohmann::json;

json any_value(FuzzedDataProvider& data) {
  switch (data.ConsumeIntegralInRange(0, 7)) {
    case 0:
      return data.ConsumeIntegral<int64_t>();
    case 1:
      return data.ConsumeIntegralInRange<int64_t>(-1, 4200000);
    case 2:
      return data.ConsumeIntegral<uint64_t>();
    case 3:
      return data.ConsumeFloatingPoint<double>();
    case 4:
      return data.ConsumeBool();
    case 5:
      return data.PickValueInArray({json(nullptr), json::array(), json::object(), json::array({json::object()})});
    case 6:
      return data.PickValueInArray({"4Ki", "1e3", "0.5m", "25Gbit", "0.1bit", "2026-01-31T12:00:00.5+01:00",
                                    "0000-01-01T00:00:00+01:00", "Auto", "True", "1e-9", "1e300"});
    default:
      return data.ConsumeRandomLengthString(40);
  }
}

template <class Object>
void check(json object, absl::StatusOr<Object> (*parse)(const json&), FuzzedDataProvider& data) {
  const json leaves = object.flatten();
  for (int changes = data.ConsumeIntegralInRange(1, 4); changes > 0; --changes) {
    auto leaf = leaves.begin();
    std::advance(leaf, data.ConsumeIntegralInRange<size_t>(0, leaves.size() - 1));
    const json::json_pointer pointer(leaf.key());
    const json::json_pointer chosen = data.ConsumeBool() ? pointer : pointer.parent_pointer();
    if (object.contains(chosen)) object[chosen] = any_value(data);
  }
  const auto first = parse(object);
  if (!first.ok()) {
    if (first.status().message().empty()) std::abort();
    return;
  }
  const auto second = parse(to_json(*first));
  if (!second.ok()) std::abort();
  if (to_json(*second) != to_json(*first)) std::abort();
}

}  // namespace
}  // namespace gleaner::api

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace gleaner::api;  // NOLINT(google-build-using-namespace)
  FuzzedDataProvider data(bytes, size);
  switch (data.ConsumeIntegralInRange(0, 3)) {
    case 0:
      check<TrainingJob>(to_json(filled_job()), &parse_training_job, data);
      return 0;
    case 1:
      check<NodeProfile>(to_json(filled_profile()), &parse_node_profile, data);
      return 0;
    case 2:
      check<Topology>(to_json(filled_topology()), &parse_topology, data);
      return 0;
    default:
      check<ReductionPlan>(to_json(filled_plan()), &parse_reduction_plan, data);
      return 0;
  }
}
