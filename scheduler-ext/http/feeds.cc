#include "scheduler-ext/http/feeds.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/kube/resource.h"

namespace gleaner::extender {
using api::NodeProfile;
using placement::Node;
using placement::Pod;

Feeds::Feeds(const Env& env, kube::Client& client, State& state) {
  nodes_ = kube::Cache<Node>::start(env, client,
                                    {.resource = kube::nodes(),
                                     .selector = {},
                                     .decode = placement::parse_node,
                                     .on_change =
                                         [&state](const auto& before, const auto& after) {
                                           if (after != nullptr) state.set_node(after);
                                           if (after == nullptr) state.remove_node(before->name);
                                         },
                                     .index = nullptr});
  profiles_ = kube::Cache<NodeProfile>::start(env, client,
                                              {.resource = kube::node_profiles(),
                                               .selector = {},
                                               .decode = api::parse_node_profile,
                                               .on_change =
                                                   [&state](const auto& before, const auto& after) {
                                                     if (after != nullptr) state.set_profile(after);
                                                     if (after == nullptr) state.remove_profile(before->meta.name);
                                                   },
                                               .index = nullptr});
  pods_ = kube::Cache<Pod>::start(env, client,
                                  {.resource = kube::pods(),
                                   .selector = {.ns = "", .labels = api::kJobLabel, .fields = ""},
                                   .decode = placement::parse_pod,
                                   .on_change =
                                       [&state](const auto& before, const auto& after) {
                                         if (after != nullptr) state.set_pod(after);
                                         if (after == nullptr) state.remove_pod(before->key);
                                       },
                                   .index = nullptr});
}

std::string Feeds::missing() const {
  std::vector<std::string> missing;
  if (!nodes_->synced()) missing.emplace_back("nodes");
  if (!profiles_->synced()) missing.emplace_back("nodeprofiles");
  if (!pods_->synced()) missing.emplace_back("pods");
  return missing.empty() ? "" : absl::StrCat("waiting for the API server's list of ", absl::StrJoin(missing, ", "));
}

}  // namespace gleaner::extender
