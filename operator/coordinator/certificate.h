// The coordinator's certificate, from files that are renewed from time to time: TLS 1.2 or later, members need no
// certificate.
#pragma once

#include <grpcpp/security/server_credentials.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace gleaner::coordinator {

// PEM files, looked at once a second: connections that come later get what they hold then. Whoever renews them swaps
// both at once (a directory's symbolic link, as Kubernetes does). InvalidArgument: they can't be read now, or do not
// belong together.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> server_credentials(const std::string& certificate_file,
                                                                            const std::string& key_file);

}  // namespace gleaner::coordinator
