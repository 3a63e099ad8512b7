#include "agent/publish/publisher.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/kube/resource.h"

namespace gleaner::publish {
namespace {

using nlohmann::json;

json named(const std::string& name) {
  return {{"apiVersion", api::kApiVersion}, {"kind", "NodeProfile"}, {"metadata", {{"name", name}}}};
}

kube::ApplyOptions as_agent(const std::string& subresource) {
  return {.field_manager = kFieldManager, .force = true, .subresource = subresource};
}

}  // namespace

absl::Status Publisher::apply_object(const NodeState& node) {
  if (owner_uid_ == node.uid) return absl::OkStatus();
  json object = named(node.name);
  object["metadata"]["ownerReferences"] = {
      {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", node.name}, {"uid", node.uid}}};
  GLN_RETURN_IF_ERROR(client_.apply(kube::node_profiles(), object, as_agent("")).status());
  owner_uid_ = node.uid;
  return absl::OkStatus();
}

absl::Status Publisher::publish(const NodeState& node, const api::NodeProfileStatus& status) {
  GLN_RETURN_IF_ERROR(apply_object(node));
  json object = named(node.name);
  object["status"] = api::to_json(status);
  absl::Status written = client_.apply(kube::node_profiles(), object, as_agent("status")).status();
  if (absl::IsNotFound(written)) {  // the profile was deleted
    owner_uid_.clear();
    GLN_RETURN_IF_ERROR(apply_object(node));
    written = client_.apply(kube::node_profiles(), object, as_agent("status")).status();
  }
  return written;
}

absl::Status Publisher::advertise(const NodeState& node, uint32_t summers) {
  if (node.summers_capacity == summers) return absl::OkStatus();
  const json patch = {{"status", {{"capacity", {{api::kSummerResource, absl::StrCat(summers)}}}}}};
  return client_.merge_patch(kube::nodes(), "", node.name, patch, "status").status();
}

}  // namespace gleaner::publish
