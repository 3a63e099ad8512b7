// IdentityStore keeps the coordinator's Identity in a Secret that all replicas share, in files that gRPC watches, and
// its CA in a ConfigMap of every namespace with jobs.
//
// A Secret that was deleted is written again with the Identity that this store has read before, so that running jobs
// keep their secrets. A Secret without data gets a new Identity.
//
// Thread safe.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/base/env.h"
#include "common/kube/client.h"
#include "operator/service/certificates.h"

namespace gleaner::operation {

// The Secret in the operator's namespace that holds its Identity.
inline constexpr char kSecretName[] = "gleaner-operator";

class IdentityStore {
 public:
  // Returns the CA in the ConfigMap of a namespace, as a cache has it; nullopt: there is no ConfigMap.
  using FindBootstrap = std::function<std::optional<std::string>(const std::string& ns)>;

  // `folder` is private to this process. The store writes certificate_file() and key_file() there.
  IdentityStore(const Env& env, kube::Client& client, std::string ns, std::vector<std::string> host_names,
                std::filesystem::path folder, FindBootstrap find_bootstrap);

  // Reads the Secret, renews the parts that are due, and writes the Secret unless it has changed meanwhile. Then writes
  // the files. To be called at the start and periodically, before ensure_bootstrap() for all namespaces with jobs.
  absl::Status refresh() ABSL_LOCKS_EXCLUDED(mutex_);

  // Ensures that the namespace has the ConfigMap with the current CA. Writes it only if the cache has another one.
  absl::Status ensure_bootstrap(const std::string& ns) ABSL_LOCKS_EXCLUDED(mutex_);

  // Deletes the namespace's ConfigMap. To be called when the last job of the namespace is gone.
  absl::Status drop_bootstrap(const std::string& ns);

  // Returns the secret of one job's data connections, which is the same at every replica.
  std::string data_secret(const std::string& session, const std::string& job_uid) const ABSL_LOCKS_EXCLUDED(mutex_);

  std::string certificate_file() const { return (folder_ / "tls.crt").string(); }
  std::string key_file() const { return (folder_ / "tls.key").string(); }
  Identity identity() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::StatusOr<Identity> load_or_make() ABSL_LOCKS_EXCLUDED(mutex_);
  void keep_metadata(const kube::Object& secret) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the Secret without data, with the labels and annotations that it had before it was deleted.
  kube::Object new_secret() const ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status write_files(const Identity& identity) const;

  const Env env_;
  kube::Client& client_;
  const std::string ns_;
  const std::vector<std::string> host_names_;
  const std::filesystem::path folder_;
  const FindBootstrap find_bootstrap_;
  mutable absl::Mutex mutex_;
  Identity identity_ ABSL_GUARDED_BY(mutex_);
  // Labels and annotations of the Secret. Helm takes over only a Secret that has those of its release.
  kube::Object secret_labels_ ABSL_GUARDED_BY(mutex_);
  kube::Object secret_annotations_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gleaner::operation
