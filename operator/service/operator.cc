#include "operator/service/operator.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/base/status_macros.h"
#include "common/http/server.h"
#include "common/kube/leader.h"
#include "common/metrics/server.h"
#include "operator/service/leadership.h"

namespace gleaner::operation {
namespace {

constexpr char kLeaseName[] = "gleaner-operator";
constexpr absl::Duration kFirstSync = absl::Minutes(5);
constexpr absl::Duration kPollInterval = absl::Milliseconds(200);
// While one step of a job's decisions fails, the others still have to follow the job.
constexpr absl::Duration kLongestRetry = absl::Seconds(30);
constexpr uint32_t kRequestsInFlight = 32;

// A temporary folder for key files that only this process can read. The destructor removes it.
class PrivateFolder {
 public:
  static absl::StatusOr<std::unique_ptr<PrivateFolder>> make() {
    std::string path = (std::filesystem::temp_directory_path() / "gleaner-operator-XXXXXX").string();
    if (mkdtemp(path.data()) == nullptr) return absl::UnavailableError(absl::StrCat("can't make a folder like ", path));
    return std::make_unique<PrivateFolder>(std::move(path));
  }
  explicit PrivateFolder(std::string path) : path_(std::move(path)) {}
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;
  ~PrivateFolder() {
    std::error_code ignored;  // the folder is in the system's temporary folder anyway
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

// Passes the state of the lease from the election's thread to the main thread.
class LeaseState {
 public:
  void acquire() {
    absl::MutexLock lock(&mutex_);
    held_ = true;
  }
  void lose() {
    absl::MutexLock lock(&mutex_);
    lost_ = true;
  }
  bool held() const {
    absl::MutexLock lock(&mutex_);
    return held_;
  }
  bool lost() const {
    absl::MutexLock lock(&mutex_);
    return lost_;
  }

 private:
  mutable absl::Mutex mutex_;
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
  bool lost_ ABSL_GUARDED_BY(mutex_) = false;
};

std::unique_ptr<kube::LeaderElection> stand_for_election(const Env& env, kube::Client& client,
                                                         const OperatorOptions& options, LeaseState& lease) {
  kube::LeaderElection::Options election;
  election.ns = options.ns;
  election.name = kLeaseName;
  election.identity = options.identity;
  election.lease_duration = options.lease_duration;
  election.renew_deadline = options.lease_duration * 2 / 3;
  election.retry_period = options.lease_duration / 8;
  election.on_acquired = [&lease] { lease.acquire(); };
  election.on_lost = [&lease, log = env.log] {
    lease.lose();
    log->error("the lease is lost: another replica leads; this replica ends");
  };
  return kube::LeaderElection::start(env, client, std::move(election));
}

// Leads while this replica holds the lease. Ends on a signal, or with Aborted when the lease is lost.
absl::Status serve(const Leadership::Parts& parts, const EndSignals& signals) {
  LeaseState lease;
  const auto election = stand_for_election(parts.env, parts.client, parts.options, lease);
  std::unique_ptr<Leadership> leadership;
  while (signals.wait(kPollInterval) == 0) {
    if (lease.lost()) return absl::AbortedError("the lease was lost");
    if (leadership != nullptr || !lease.held()) continue;
    parts.env.log->info("this replica leads", "identity", parts.options.identity);
    GLN_ASSIGN_OR_RETURN(leadership, Leadership::begin(parts, election->term()));
  }
  parts.env.log->info("stopping: jobs go on under the next leader");
  leadership.reset();  // before the lease is released
  election->release();
  return absl::OkStatus();
}

}  // namespace

absl::Status run(const Env& env, const OperatorOptions& options, const kube::Credentials& credentials,
                 const EndSignals& signals) {
  GLN_ASSIGN_OR_RETURN(const auto folder, PrivateFolder::make());
  const auto registry = std::make_shared<prometheus::Registry>();
  OperatorMetrics metrics(*registry, GLEANER_VERSION);
  GLN_ASSIGN_OR_RETURN(const auto metrics_server, metrics::serve(options.metrics, registry));
  kube::Client::Options client_options;
  client_options.credentials = credentials;
  client_options.user_agent = absl::StrCat("gleaner-operator/", GLEANER_VERSION);
  client_options.in_flight = kRequestsInFlight;
  GLN_ASSIGN_OR_RETURN(const auto client, kube::Client::create(env, std::move(client_options)));
  kube::WorkQueue queue(*env.clock, kLongestRetry);
  kube::WorkQueue repairs(*env.clock, kLongestRetry);
  Cluster cluster(env, *client, queue, repairs, options.watch, options.label_levels);
  GLN_ASSIGN_OR_RETURN(
      const auto health,
      http::Server::start({options.health}, http::health_routes([&cluster]() -> std::string {
                            return cluster.wait_synced(absl::ZeroDuration()) ? "" : "the caches are not filled yet";
                          })));
  const absl::Duration give_up = env.clock->since_start() + kFirstSync;
  while (!cluster.wait_synced(absl::ZeroDuration())) {
    if (signals.wait(kPollInterval) != 0) return absl::OkStatus();
    if (env.clock->since_start() > give_up) {
      return absl::DeadlineExceededError(
          "the API server did not list jobs, pods, nodes, profiles, plans, topologies, Services and the ConfigMaps "
          "gleaner-bootstrap within 5 minutes: are the CRDs installed, and may this service account list them?");
    }
  }
  return serve({env, options, *client, cluster, queue, repairs, *registry, metrics, folder->path()}, signals);
}

}  // namespace gleaner::operation
