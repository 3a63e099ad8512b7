// Publisher writes the node's profile and advertises room for summers on its Node object. Used by one thread at a time.
// Calls block.
//
// The profile is written by server-side apply (field manager gleaner-agent): first the object with its owner, then the
// status. Every write may be repeated. The next call retries a write that failed.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "agent/publish/node.h"
#include "common/api/node_profile.h"
#include "common/kube/client.h"

namespace gleaner::publish {

inline constexpr char kFieldManager[] = "gleaner-agent";

class Publisher {
 public:
  explicit Publisher(kube::Client& client) : client_(client) {}

  // Creates the profile, owned by this node, if it does not exist, and writes its status.
  absl::Status publish(const NodeState& node, const api::NodeProfileStatus& status);

  // Sets the node's capacity of gleaner.dev/summer if it differs. The kubelet then makes it allocatable.
  absl::Status advertise(const NodeState& node, uint32_t summers);

 private:
  absl::Status apply_object(const NodeState& node);

  kube::Client& client_;
  std::string owner_uid_;  // uid of the node that was last written as the profile's owner
};

}  // namespace gleaner::publish
