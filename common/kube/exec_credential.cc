#include "common/kube/exec_credential.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/kube/object.h"

namespace gleaner::kube {

std::string exec_info(const ExecCommand& command, bool is_interactive) {
  nlohmann::json spec = {{"interactive", is_interactive}};
  if (!command.cluster.is_null()) spec["cluster"] = command.cluster;
  return to_text({{"apiVersion", command.api_version}, {"kind", "ExecCredential"}, {"spec", std::move(spec)}});
}

absl::StatusOr<ExecCredential> parse_exec_credential(absl::string_view output, absl::string_view api_version) {
  const nlohmann::json object =
      nlohmann::json::parse(output.begin(), output.end(), nullptr, /*allow_exceptions=*/false);
  if (!object.is_object() || text_at(object, {"kind"}) != "ExecCredential") {
    return absl::InvalidArgumentError("expected an ExecCredential as JSON");
  }
  if (const std::string version = text_at(object, {"apiVersion"}); version != api_version) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected an ExecCredential of the apiVersion ", api_version, ", not '", version, "'"));
  }
  ExecCredential credential{.token = text_at(object, {"status", "token"}),
                            .certificate = text_at(object, {"status", "clientCertificateData"}),
                            .key = text_at(object, {"status", "clientKeyData"})};
  if (credential.certificate.empty() != credential.key.empty()) {
    return absl::InvalidArgumentError(
        "expected both status.clientCertificateData and status.clientKeyData, or neither");
  }
  if (credential.token.empty() && credential.certificate.empty()) {
    return absl::InvalidArgumentError("expected status.token or status.clientCertificateData");
  }
  const std::string expiry = text_at(object, {"status", "expirationTimestamp"});
  std::string why;
  if (!expiry.empty() && !absl::ParseTime(absl::RFC3339_full, expiry, &credential.expiry, &why)) {
    return absl::InvalidArgumentError(absl::StrCat("status.expirationTimestamp '", expiry, "': ", why));
  }
  return credential;
}

}  // namespace gleaner::kube
