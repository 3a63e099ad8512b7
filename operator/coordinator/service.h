// The coordinators of many jobs behind one gRPC port: what the operator runs. (Server, for one job by hand, is this
// with a single job.)
//
// Threads: gRPC's read the streams; one of the service's own ("gln-jobs") owns every Core and takes everything in turn.
// Public functions are thread safe and return at once.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/address.h"
#include "common/base/env.h"
#include "operator/coordinator/options.h"
#include "operator/coordinator/roster.h"
#include "operator/coordinator/summary.h"

namespace prometheus {
class Registry;
}

namespace gleaner::coordinator {

// Checks who shows a bearer token. Called on the service's thread, and does not call the service; `done` may be called
// from any thread, once, also at once, also after the end of the service.
class Authenticator {
 public:
  virtual ~Authenticator() = default;
  // PermissionDenied, with a reason that is safe to show, unless `bearer` belongs to this member of this job.
  virtual void authenticate(const std::string& job, const Identity& identity, const std::string& bearer,
                            std::function<void(absl::Status)> done) = 0;
};

// A member as people and ReductionPlans see it.
struct MemberState {
  std::string name;  // worker-0, summer-1
  Role role = Role::kWorker;
  uint32_t index = 0;
  bool joined = false;  // all its local ranks, and none has lost us
  bool left = false;
  std::string address;
  std::vector<std::string> endpoints;  // as plan::Member has them
  double bits_per_second = 0;
  bool bandwidth_assumed = false;  // in the plan in force: nobody said how fast its link is
  uint64_t owned_bytes = 0;
  uint32_t acknowledged_epoch = 0;
};

struct JobState {
  enum class Phase { kGathering, kRecovering, kRunning, kEnded };
  Phase phase = Phase::kGathering;
  uint32_t epoch = 0;                   // committed
  uint32_t proposed_epoch = 0;          // on its way; 0: none
  std::vector<MemberState> members;     // workers, then summers
  Summary summary;                      // so far
  std::optional<absl::Status> outcome;  // once ended; OK when every worker left well
  struct Culprit {
    Role role = Role::kWorker;
    uint32_t index = 0;
    uint32_t local_rank = 0;
  };
  bool anybody_joined = false;     // any rank, ever
  std::optional<Culprit> culprit;  // who the job failed by, where one is known
  std::string stall;               // which rank has not begun what others wait for (stalls.h); empty: none
};

class Service {
 public:
  struct Tls {
    std::string certificate_file, key_file;  // PEM; watched, so that renewed files take effect
  };
  struct ServiceOptions {
    Address listen;
    std::optional<Tls> tls;                                  // none: plain text
    Authenticator* authenticator = nullptr;                  // all members show bearer tokens; needs TLS
    std::function<void(const std::string& job)> on_changed;  // state(job) is worth reading; on the service's thread
    prometheus::Registry* registry = nullptr;                // gleaner_coordinator_*{job}; outlives the service
    uint64_t term = 0;                                       // above that of every service whose jobs this one takes up
  };
  struct JobOptions {
    Options options;          // options.job names it; unique here
    std::string token;        // members prove it; empty where they show bearer tokens
    std::string data_secret;  // bearer: 32 bytes, the same after a restart of the coordinator
    // The job may have begun under another coordinator: for `options.start_timeout` members come back with what they
    // have (docs/protocol.md, Re-attachment).
    bool may_resume = false;
  };

  static absl::StatusOr<std::unique_ptr<Service>> start(const Env& env, ServiceOptions options);
  virtual ~Service() = default;
  virtual Address address() const = 0;

  virtual absl::Status add(const JobOptions& job) = 0;  // AlreadyExists, InvalidArgument
  // Ends the job, if it goes on, with `why` for all its members, and forgets it.
  virtual void remove(const std::string& job, const absl::Status& why) = 0;
  // Before the first plan: waits for this many summers and no more. FailedPrecondition afterwards: then summers just
  // come.
  virtual absl::Status set_summers(const std::string& job, uint32_t summers) = 0;
  // This summer shall go: the next plan does without it, and then it ends. NotFound: no such job or summer.
  virtual absl::Status release_summer(const std::string& job, uint32_t index) = 0;
  // What a member has now, each way: owners follow. NotFound, InvalidArgument.
  virtual absl::Status set_bandwidth(const std::string& job, Role role, uint32_t index, double bits_per_second) = 0;
  // Somebody who can see it says that this member has ended (its pod did): OK: well, and it won't come back; else it is
  // lost.
  virtual void ended(const std::string& job, Role role, uint32_t index, const absl::Status& how) = 0;
  virtual std::optional<JobState> state(const std::string& job) const = 0;
};

}  // namespace gleaner::coordinator
