// Credentials of a member's connection: its token, and the certificates that it trusts. Files are read again for each
// connection, since Kubernetes renews them.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/member/client.h"

namespace gleaner::member {

// TLS to whom options.ca_file vouches for, by the name of the coordinator's host; plain without such a file. NotFound,
// PermissionDenied and the like: it can't be read; InvalidArgument: no certificate in it.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> channel_credentials(const JoinOptions& options);

// The token to be shown. FailedPrecondition: without TLS it is shown to nobody.
absl::StatusOr<std::string> bearer_token(const JoinOptions& options);

}  // namespace gleaner::member
