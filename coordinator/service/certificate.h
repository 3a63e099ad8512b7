// The coordinator's TLS credentials, from certificate files that are renewed from time to time. TLS 1.2 or later;
// members need no certificate.
#pragma once

#include <grpcpp/security/server_credentials.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace gleaner::coordinator {

// Returns credentials that read PEM files, and read them again within a second of a change. Connections that are opened
// after that use the new certificate. Both files must be replaced in one step, by a directory's symbolic link, as
// Kubernetes does. InvalidArgument: the files can't be read now, or the key does not belong to the certificate.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> server_credentials(const std::string& certificate_file,
                                                                            const std::string& key_file);

}  // namespace gleaner::coordinator
