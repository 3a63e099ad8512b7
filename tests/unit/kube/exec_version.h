// The version of the protocol by which tests get credentials from commands.
#pragma once

namespace gleaner::kube {

inline constexpr char kExecVersion[] = "client.authentication.k8s.io/v1";

}  // namespace gleaner::kube
