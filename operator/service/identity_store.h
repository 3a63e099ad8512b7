// Keeps the coordinator's Identity: in a Secret that all replicas share, in files that gRPC watches, and its CA in a
// ConfigMap of every namespace with jobs.
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

class IdentityStore {
 public:
  // `folder` is private to this process and gets certificate_file() and key_file().
  IdentityStore(const Env& env, kube::Client& client, std::string ns, std::vector<std::string> host_names,
                std::filesystem::path folder);

  // Reads the Secret, renews what is due, writes it back if it is still as it was read, then the files and every
  // ConfigMap that has another CA. To be called at the start and now and then.
  absl::Status refresh() ABSL_LOCKS_EXCLUDED(mutex_);

  // The ConfigMap is there and has today's CA. Cheap when it was made before.
  absl::Status ensure_bootstrap(const std::string& ns) ABSL_LOCKS_EXCLUDED(mutex_);

  // The last job of the namespace is gone, and its ConfigMap goes, too.
  absl::Status drop_bootstrap(const std::string& ns) ABSL_LOCKS_EXCLUDED(mutex_);

  // The secret of one job's data connections: the same at every replica.
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
  absl::flat_hash_map<std::string, Written> bootstraps_ ABSL_GUARDED_BY(mutex_);  // by namespace
};

}  // namespace gleaner::operation
