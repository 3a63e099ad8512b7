// Writes the node's profile and advertises room for summers on its Node object. One thread at a time; calls block.
//
// The profile is applied (server-side apply, field manager gleaner-agent): first the object with its owner, then the
// status. Every write may be done twice. What fails is tried again with the next call.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "agent/publish/node.h"
#include "common/kube/client.h"
#include "operator/types/node_profile.h"

namespace gleaner::publish {

inline constexpr char kFieldManager[] = "gleaner-agent";

class Publisher {
 public:
  explicit Publisher(kube::Client& client) : client_(client) {}

  // Makes the profile if it isn't there, owned by this node, and writes its status.
  absl::Status publish(const NodeState& node, const types::NodeProfileStatus& status);

  // Sets the capacity of gleaner.dev/summer if the node says something else. The kubelet makes it allocatable.
  absl::Status advertise(const NodeState& node, uint32_t summers);

 private:
  absl::Status apply_object(const NodeState& node);

  kube::Client& client_;
  std::string owner_uid_;  // of the node that the profile was last given to
};

}  // namespace gleaner::publish
