// Feeds keeps a State up to date with the API server's nodes, NodeProfiles and pods of all jobs.
#pragma once

#include <memory>
#include <string>

#include "common/api/node_profile.h"
#include "common/base/env.h"
#include "common/kube/cache.h"
#include "common/kube/client.h"
#include "common/placement/fleet.h"
#include "scheduler-ext/state/state.h"

namespace gleaner::extender {

class Feeds {
 public:
  // All references must outlive the Feeds.
  Feeds(const Env& env, kube::Client& client, State& state);
  // Returns a text that names the kinds of objects that have not been listed yet; empty if all have.
  std::string missing() const;

 private:
  std::unique_ptr<kube::Cache<placement::Node>> nodes_;
  std::unique_ptr<kube::Cache<api::NodeProfile>> profiles_;
  std::unique_ptr<kube::Cache<placement::Pod>> pods_;
};

}  // namespace gleaner::extender
