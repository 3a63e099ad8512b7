#include "coordinator/service/certificate.h"

#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace gleaner::coordinator {
namespace {

constexpr unsigned int kLookEverySeconds = 1;

// Checks the files in advance, since gRPC would accept invalid ones and fail each handshake.
absl::Status check(const std::string& certificate_file, const std::string& key_file) {
  const std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context(SSL_CTX_new(TLS_server_method()), &SSL_CTX_free);
  ERR_clear_error();
  const auto failed = [](absl::string_view what, const std::string& file) {
    const char* reason = ERR_reason_error_string(ERR_peek_last_error());
    ERR_clear_error();
    return absl::InvalidArgumentError(
        absl::StrCat("can't use ", what, " '", file, "': ", reason == nullptr ? "not in PEM" : reason));
  };
  if (SSL_CTX_use_certificate_chain_file(context.get(), certificate_file.c_str()) != 1) {
    return failed("the certificate", certificate_file);
  }
  if (SSL_CTX_use_PrivateKey_file(context.get(), key_file.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context.get()) != 1) {
    return failed("the certificate's key", key_file);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> server_credentials(const std::string& certificate_file,
                                                                            const std::string& key_file) {
  GLN_RETURN_IF_ERROR(check(certificate_file, key_file));
  const auto provider = std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(key_file, certificate_file,
                                                                                             kLookEverySeconds);
  grpc::experimental::TlsServerCredentialsOptions options(provider);
  options.watch_identity_key_cert_pairs();
  options.set_cert_request_type(GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
  return grpc::experimental::TlsServerCredentials(options);
}

}  // namespace gleaner::coordinator
