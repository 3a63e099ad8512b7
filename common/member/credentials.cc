#include "common/member/credentials.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/secret_file.h"
#include "common/base/status_macros.h"

namespace gleaner::member {

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> channel_credentials(const JoinOptions& options) {
  if (options.ca_file.empty()) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions tls;
  GLN_ASSIGN_OR_RETURN(tls.pem_root_certs, read_file(options.ca_file, "the CA file (GLEANER_CA_FILE)"));
  if (!absl::StrContains(tls.pem_root_certs, "-----BEGIN CERTIFICATE-----")) {
    return absl::InvalidArgumentError(
        absl::StrCat("the CA file '", options.ca_file, "' (GLEANER_CA_FILE) has no certificate; expected PEM"));
  }
  return grpc::SslCredentials(tls);
}

absl::StatusOr<std::string> bearer_token(const JoinOptions& options) {
  if (options.ca_file.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the coordinator at ", options.coordinator.to_string(),
                     " asks for a token that this member sends only over TLS; set GLEANER_CA_FILE (--ca-file)"));
  }
  return options.token_file.empty() ? options.token : read_secret_file(options.token_file);
}

}  // namespace gleaner::member
