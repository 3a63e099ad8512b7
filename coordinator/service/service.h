// Service coordinates many jobs behind one gRPC port, as the operator runs it. (Server runs one job.)
//
// gRPC's threads read the streams. One thread of the service ("gln-jobs") processes the messages, one at a time. Public
// functions are thread safe and do not wait for members.
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
#include "coordinator/roster/options.h"
#include "coordinator/roster/roster.h"
#include "coordinator/status/job_state.h"

namespace prometheus {
class Registry;
}

namespace gleaner::coordinator {

// Checks bearer tokens. The service calls authenticate() on its thread, with its lock held, so authenticate() must not
// call the service. The authenticator calls `done` once, from any thread, possibly before authenticate() returns, and
// possibly after the end of the service.
class Authenticator {
 public:
  virtual ~Authenticator() = default;
  // Checks that `bearer` belongs to this member of this job. If not, `done` gets PermissionDenied, with a reason that
  // may be shown to the member.
  virtual void authenticate(const std::string& job, const Identity& identity, const std::string& bearer,
                            std::function<void(absl::Status)> done) = 0;
};

class Service {
 public:
  struct Tls {
    std::string certificate_file, key_file;  // PEM; renewed files take effect
  };
  struct ServiceOptions {
    Address listen;                          // members connect to this address
    std::optional<Tls> tls;                  // none: no TLS
    Authenticator* authenticator = nullptr;  // if set, members show bearer tokens; needs TLS
    // Called on the service's thread after state(job) has changed.
    std::function<void(const std::string& job)> on_changed;
    prometheus::Registry* registry = nullptr;  // for gleaner_coordinator_*{job_name}; outlives the service
    uint64_t term = 0;                         // higher than the term of any service whose jobs this one takes up
  };
  struct JobOptions {
    Options options;          // options.job is the job's name, unique in this service
    std::string token;        // members prove that they know the token; empty with an authenticator
    std::string data_secret;  // with an authenticator: 32 bytes, which stay the same after a restart of the coordinator
    // The job may have begun under another coordinator, so for `options.start_timeout` members may return with the
    // state that they hold (docs/protocol.md#re-attachment).
    bool may_resume = false;
  };

  static absl::StatusOr<std::unique_ptr<Service>> start(const Env& env, ServiceOptions options);
  virtual ~Service() = default;
  virtual Address address() const = 0;

  virtual absl::Status add(const JobOptions& job) = 0;  // AlreadyExists, InvalidArgument
  // Ends the job with `why` for all its members, if it has not ended, and forgets it.
  virtual void remove(const std::string& job, const absl::Status& why) = 0;
  // Sets how many summers the job waits for before its first plan; see Core::set_summers(). FailedPrecondition once a
  // plan is proposed: from then on summers may join at any time.
  virtual absl::Status set_summers(const std::string& job, uint32_t summers) = 0;
  // Releases this summer: the next plan leaves it out, and then it ends. NotFound: no such job or summer.
  virtual absl::Status release_summer(const std::string& job, uint32_t index) = 0;
  // Sets a member's bandwidth, each way; the next plan follows it. NotFound: no such job or member. InvalidArgument:
  // the bandwidth is out of range.
  virtual absl::Status set_bandwidth(const std::string& job, Role role, uint32_t index, double bits_per_second) = 0;
  // Sets the switch of the job's network to which the link of this summer leads; see Core::set_summer_switch().
  // NotFound: no such job.
  virtual absl::Status set_summer_switch(const std::string& job, uint32_t index, uint32_t at) = 0;
  // Reports that this member has ended, for example because its pod did. OK: it ended cleanly and does not come back;
  // otherwise it is lost.
  virtual void ended(const std::string& job, Role role, uint32_t index, const absl::Status& how) = 0;
  virtual std::optional<JobState> state(const std::string& job) const = 0;
};

}  // namespace gleaner::coordinator
