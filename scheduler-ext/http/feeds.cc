#include "scheduler-ext/http/feeds.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/kube/cache.h"
#include "common/kube/resource.h"
#include "operator/placement/fleet.h"
#include "operator/types/node_profile.h"

namespace gleaner::extender {
namespace {

using placement::Node;
using placement::Pod;
using types::NodeProfile;

class ThreeFeeds final : public Feeds {
 public:
  ThreeFeeds(const Env& env, kube::Client& client, State& state) {
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
                                                 .decode = types::parse_node_profile,
                                                 .on_change =
                                                     [&state](const auto& before, const auto& after) {
                                                       if (after != nullptr) state.set_profile(after);
                                                       if (after == nullptr) state.remove_profile(before->meta.name);
                                                     },
                                                 .index = nullptr});
    pods_ = kube::Cache<Pod>::start(env, client,
                                    {.resource = kube::pods(),
                                     .selector = {.ns = "", .labels = types::kJobLabel, .fields = ""},
                                     .decode = placement::parse_pod,
                                     .on_change =
                                         [&state](const auto& before, const auto& after) {
                                           if (after != nullptr) state.set_pod(after);
                                           if (after == nullptr) state.remove_pod(before->key);
                                         },
                                     .index = nullptr});
  }

  std::string missing() const override {
    std::vector<std::string> missing;
    if (!nodes_->synced()) missing.emplace_back("nodes");
    if (!profiles_->synced()) missing.emplace_back("nodeprofiles");
    if (!pods_->synced()) missing.emplace_back("pods");
    return missing.empty() ? "" : absl::StrCat("waiting for the API server's list of ", absl::StrJoin(missing, ", "));
  }

 private:
  std::unique_ptr<kube::Cache<Node>> nodes_;
  std::unique_ptr<kube::Cache<NodeProfile>> profiles_;
  std::unique_ptr<kube::Cache<Pod>> pods_;
};

}  // namespace

std::unique_ptr<Feeds> Feeds::start(const Env& env, kube::Client& client, State& state) {
  return std::make_unique<ThreeFeeds>(env, client, state);
}

}  // namespace gleaner::extender
