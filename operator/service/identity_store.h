// IdentityStore keeps the coordinator's Identity in a Secret that all replicas share, in files that gRPC watches, and
// its CA in a ConfigMap of every namespace with jobs.
//
// Thread safe.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
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
  // `folder` is private to this process. The store writes certificate_file() and key_file() there.
  IdentityStore(const Env& env, kube::Client& client, std::string ns, std::vector<std::string> host_names,
                std::filesystem::path folder);

  // Reads the Secret, renews the parts that are due, and writes the Secret unless it has changed meanwhile. Then writes
  // the files and every ConfigMap that has another CA. To be called at the start and periodically.
  absl::Status refresh() ABSL_LOCKS_EXCLUDED(mutex_);

  // Ensures that the namespace has the ConfigMap with the current CA. Cheap if this store wrote it recently.
  absl::Status ensure_bootstrap(const std::string& ns) ABSL_LOCKS_EXCLUDED(mutex_);

  // Deletes the namespace's ConfigMap. To be called when the last job of the namespace is gone.
  absl::Status drop_bootstrap(const std::string& ns) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the secret of one job's data connections, which is the same at every replica.
  std::string data_secret(const std::string& session, const std::string& job_uid) const ABSL_LOCKS_EXCLUDED(mutex_);

  std::string certificate_file() const { return (folder_ / "tls.crt").string(); }
  std::string key_file() const { return (folder_ / "tls.key").string(); }
  Identity identity() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::StatusOr<Identity> load_or_make();
  absl::Status write_files(const Identity& identity) const;
  absl::Status write_bootstrap(const std::string& ns, const std::string& ca);

  const Env env_;
  kube::Client& client_;
  const std::string ns_;
  const std::vector<std::string> host_names_;
  const std::filesystem::path folder_;
  mutable absl::Mutex mutex_;
  Identity identity_ ABSL_GUARDED_BY(mutex_);
  struct Written {
    std::string ca;
    absl::Duration at;
  };
  // ConfigMaps that this store wrote, by namespace.
  absl::flat_hash_map<std::string, Written> bootstraps_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gleaner::operation
