#include "operator/service/identity_store.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "operator/reconcile/names.h"
#include "operator/service/field_manager.h"

namespace gleaner::operation {
namespace {

using nlohmann::json;

constexpr int kAttempts = 5;

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

}  // namespace

IdentityStore::IdentityStore(const Env& env, kube::Client& client, std::string ns, std::vector<std::string> host_names,
                             std::filesystem::path folder, FindBootstrap find_bootstrap)
    : env_(env),
      client_(client),
      ns_(std::move(ns)),
      host_names_(std::move(host_names)),
      folder_(std::move(folder)),
      find_bootstrap_(std::move(find_bootstrap)) {}

absl::StatusOr<Identity> IdentityStore::load_or_make() {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    absl::StatusOr<kube::Object> secret = client_.get(kube::secrets(), ns_, kSecretName);
    if (!secret.ok() && !absl::IsNotFound(secret.status())) return secret.status();
    Identity current = secret.ok() ? from_secret(*secret) : identity();
    GLN_ASSIGN_OR_RETURN(const bool changed, renew(current, host_names_, env_.clock->now()));
    if (secret.ok()) keep_metadata(*secret);
    if (secret.ok() && !changed) return current;
    kube::Object wanted = secret.ok() ? *secret : new_secret();
    wanted["data"] = to_data(current);
    const auto written =
        secret.ok() ? client_.replace(kube::secrets(), wanted) : client_.create(kube::secrets(), wanted);
    if (written.ok()) {
      env_.log->info(changed ? "certificates made" : "the Secret was deleted, and is written again", "secret",
                     kSecretName);
      return current;
    }
    // Another replica has written the Secret first, or this write was carried out twice. Read the Secret again.
    if (!absl::IsAborted(written.status()) && !absl::IsAlreadyExists(written.status())) return written.status();
  }
  return absl::AbortedError(absl::StrCat("the Secret ", ns_, "/", kSecretName, " keeps changing"));
}

void IdentityStore::keep_metadata(const kube::Object& secret) {
  const kube::Object metadata = secret.value("metadata", kube::Object::object());
  absl::MutexLock lock(&mutex_);
  secret_labels_ = metadata.value("labels", kube::Object::object());
  secret_annotations_ = metadata.value("annotations", kube::Object::object());
}

kube::Object IdentityStore::new_secret() const {
  absl::MutexLock lock(&mutex_);
  return {
      {"apiVersion", "v1"},
      {"kind", "Secret"},
      {"metadata",
       {{"name", kSecretName}, {"namespace", ns_}, {"labels", secret_labels_}, {"annotations", secret_annotations_}}}};
}

absl::Status IdentityStore::refresh() {
  GLN_ASSIGN_OR_RETURN(Identity identity, load_or_make());
  GLN_RETURN_IF_ERROR(write_files(identity));
  absl::MutexLock lock(&mutex_);
  identity_ = std::move(identity);
  return absl::OkStatus();
}

absl::Status IdentityStore::write_files(const Identity& identity) const {
  // gRPC may read the files at any time.
  constexpr mode_t kOwnerOnly = 0600;
  GLN_RETURN_IF_ERROR(
      replace_file(key_file(), identity.server.key, "the key of the coordinator", {.mode = kOwnerOnly}));
  return replace_file(certificate_file(), identity.server.certificate, "the certificate of the coordinator",
                      {.mode = kOwnerOnly});
}

absl::Status IdentityStore::ensure_bootstrap(const std::string& ns) {
  const std::string ca = identity().ca_bundle();
  if (find_bootstrap_(ns) == ca) return absl::OkStatus();
  const kube::Object map = {{"apiVersion", "v1"},
                            {"kind", "ConfigMap"},
                            {"metadata",
                             {{"name", reconcile::kBootstrapConfigMap},
                              {"namespace", ns},
                              {"labels", {{reconcile::kManagedByLabel, reconcile::kManagedBy}}}}},
                            {"data", {{"ca.crt", ca}}}};
  return client_.apply(kube::config_maps(), map, apply_options()).status();
}

absl::Status IdentityStore::drop_bootstrap(const std::string& ns) {
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
