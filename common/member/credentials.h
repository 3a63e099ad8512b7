// Functions that read the credentials of a member's connection: its token, and the certificates that it trusts. They
// read the files for each connection, since Kubernetes renews the files.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/member/join_options.h"

namespace gleaner::member {

// Returns credentials for TLS: a CA in options.ca_file must have signed the certificate of the coordinator's host.
// Without such a file, returns credentials without TLS. InvalidArgument: the file has no certificate. Other errors: the
// file can't be read.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> channel_credentials(const JoinOptions& options);

// Returns the bearer token. FailedPrecondition: there is no TLS, without which a member does not send the token.
absl::StatusOr<std::string> bearer_token(const JoinOptions& options);

}  // namespace gleaner::member
