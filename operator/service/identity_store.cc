#include "operator/service/identity_store.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <fstream>
#include <system_error>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "operator/reconcile/names.h"

namespace gleaner::operation {
namespace {

using nlohmann::json;

constexpr int kAttempts = 5;
// A ConfigMap that was deleted is written again after this time at the latest.
constexpr absl::Duration kBelieved = absl::Minutes(10);

std::string decoded(const json& data, const char* name) {
  const auto found = data.find(name);
  std::string value;
  if (found == data.end() || !found->is_string() || !absl::Base64Unescape(found->get<std::string>(), &value)) return "";
  return value;
}

Identity from_secret(const kube::Object& secret) {
  const json data = secret.value("data", json::object());
  return {{decoded(data, "ca.crt"), decoded(data, "ca.key")},
          decoded(data, "earlier-ca.crt"),
          {decoded(data, "tls.crt"), decoded(data, "tls.key")},
          decoded(data, "data.key")};
}

json to_data(const Identity& identity) {
  return {{"ca.crt", absl::Base64Escape(identity.ca.certificate)},
          {"ca.key", absl::Base64Escape(identity.ca.key)},
          {"earlier-ca.crt", absl::Base64Escape(identity.earlier_ca)},
          {"tls.crt", absl::Base64Escape(identity.server.certificate)},
          {"tls.key", absl::Base64Escape(identity.server.key)},
          {"data.key", absl::Base64Escape(identity.data_key)}};
}

// Replaces the file atomically, since gRPC may read it at any time.
absl::Status write_file(const std::filesystem::path& path, const std::string& contents) {
  const std::filesystem::path temporary = path.string() + ".new";
  {
    std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
    file << contents;
    if (!file.flush()) return absl::UnavailableError(absl::StrCat("can't write ", temporary.string()));
  }
  std::error_code error;
  std::filesystem::permissions(temporary, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write,
                               error);
  if (!error) std::filesystem::rename(temporary, path, error);
  if (error) return absl::UnavailableError(absl::StrCat("can't write ", path.string(), ": ", error.message()));
  return absl::OkStatus();
}

}  // namespace

IdentityStore::IdentityStore(const Env& env, kube::Client& client, std::string ns, std::vector<std::string> host_names,
                             std::filesystem::path folder)
    : env_(env), client_(client), ns_(std::move(ns)), host_names_(std::move(host_names)), folder_(std::move(folder)) {}

absl::StatusOr<Identity> IdentityStore::load_or_make() {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    absl::StatusOr<kube::Object> secret = client_.get(kube::secrets(), ns_, kSecretName);
    if (!secret.ok() && !absl::IsNotFound(secret.status())) return secret.status();
    Identity identity = secret.ok() ? from_secret(*secret) : Identity{};
    GLN_ASSIGN_OR_RETURN(const bool changed, renew(identity, host_names_, env_.clock->now()));
    if (!changed) return identity;
    kube::Object wanted = secret.ok() ? *secret
                                      : kube::Object{{"apiVersion", "v1"},
                                                     {"kind", "Secret"},
                                                     {"metadata", {{"name", kSecretName}, {"namespace", ns_}}}};
    wanted["data"] = to_data(identity);
    const auto written =
        secret.ok() ? client_.replace(kube::secrets(), wanted) : client_.create(kube::secrets(), wanted);
    if (written.ok()) {
      env_.log->info("certificates made", "secret", kSecretName);
      return identity;
    }
    // Another replica has written the Secret first, or this write was carried out twice. Read the Secret again.
    if (!absl::IsAborted(written.status()) && !absl::IsAlreadyExists(written.status())) return written.status();
  }
  return absl::AbortedError(absl::StrCat("the Secret ", ns_, "/", kSecretName, " keeps changing"));
}

absl::Status IdentityStore::refresh() {
  GLN_ASSIGN_OR_RETURN(Identity identity, load_or_make());
  GLN_RETURN_IF_ERROR(write_files(identity));
  std::vector<std::string> stale;
  const std::string bundle = identity.ca_bundle();
  {
    absl::MutexLock lock(&mutex_);
    identity_ = std::move(identity);
    for (const auto& [ns, written] : bootstraps_) {
      if (written.ca != bundle) stale.push_back(ns);
    }
  }
  for (const std::string& ns : stale) {
    const absl::Status status = write_bootstrap(ns, bundle);
    if (!status.ok()) env_.log->warning("can't renew the CA", "namespace", ns, "error", status.message());
  }
  return absl::OkStatus();
}

absl::Status IdentityStore::write_files(const Identity& identity) const {
  GLN_RETURN_IF_ERROR(write_file(key_file(), identity.server.key));
  return write_file(certificate_file(), identity.server.certificate);
}

absl::Status IdentityStore::ensure_bootstrap(const std::string& ns) {
  std::string ca;
  {
    absl::MutexLock lock(&mutex_);
    ca = identity_.ca_bundle();
    const auto found = bootstraps_.find(ns);
    if (found != bootstraps_.end() && found->second.ca == ca &&
        env_.clock->since_start() - found->second.at < kBelieved) {
      return absl::OkStatus();
    }
  }
  return write_bootstrap(ns, ca);
}

absl::Status IdentityStore::write_bootstrap(const std::string& ns, const std::string& ca) {
  const kube::Object map = {{"apiVersion", "v1"},
                            {"kind", "ConfigMap"},
                            {"metadata",
                             {{"name", reconcile::kBootstrapConfigMap},
                              {"namespace", ns},
                              {"labels", {{"app.kubernetes.io/managed-by", "gleaner"}}}}},
                            {"data", {{"ca.crt", ca}}}};
  kube::ApplyOptions options;
  options.field_manager = "gleaner-operator";
  const auto applied = client_.apply(kube::config_maps(), map, options);
  absl::MutexLock lock(&mutex_);
  if (!applied.ok()) {
    bootstraps_.erase(ns);  // for example, the namespace is gone
    return applied.status();
  }
  bootstraps_[ns] = {ca, env_.clock->since_start()};
  return absl::OkStatus();
}

absl::Status IdentityStore::drop_bootstrap(const std::string& ns) {
  {
    absl::MutexLock lock(&mutex_);
    bootstraps_.erase(ns);
  }
  return client_.remove(kube::config_maps(), ns, reconcile::kBootstrapConfigMap, {});
}

std::string IdentityStore::data_secret(const std::string& session, const std::string& job_uid) const {
  const std::string about = absl::StrCat("gleaner job data", session, "\n", job_uid);
  std::string secret(EVP_MAX_MD_SIZE, '\0');
  unsigned int size = 0;
  absl::MutexLock lock(&mutex_);
  HMAC(EVP_sha256(), identity_.data_key.data(), static_cast<int>(identity_.data_key.size()),
       reinterpret_cast<const unsigned char*>(about.data()), about.size(),
       reinterpret_cast<unsigned char*>(secret.data()), &size);
  secret.resize(size);
  return secret;
}

Identity IdentityStore::identity() const {
  absl::MutexLock lock(&mutex_);
  return identity_;
}

}  // namespace gleaner::operation
