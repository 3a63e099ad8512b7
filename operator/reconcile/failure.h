// Functions that find the reason for which an attempt can't continue, and the consequence.
//
// When a worker or summer is lost, all other members end with errors of their own. So a cause that the cluster reports
// (eviction, deletion, a lost node) takes precedence over a pod's own failure, and a failure that allows a retry over a
// permanent one. Exit codes have the same meaning as for Kubeflow's training operator: 1 to 127 is a permanent fault of
// the program; 128 to 255 (a signal) allows a retry.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operator/reconcile/observation.h"
#include "operator/reconcile/workers.h"

namespace gleaner::reconcile {

struct Failure {
  enum class Kind {
    kPermanent,    // the job fails
    kOwn,          // a retry, which counts against backoffLimit
    kInterrupted,  // the cluster ended a pod: a retry, which does not count
    kUndecided,    // the cause is not clear yet: decide again soon
  };
  Kind kind = Kind::kUndecided;
  std::string reason;   // CamelCase
  std::string message;  // names the pod and what happened to it
  std::vector<std::string> confirm_missing;
  bool never_ran = false;  // no container of the pod has run: its node may need a while
};

// Returns the current attempt's pods of this role by index, with null where there is no pod.
std::vector<const PodView*> members_of_attempt(const Observation& observation, const char* role, uint32_t count);

// Returns the failure of the attempt; nullopt: there is none. A worker that has succeeded can't fail any more, even if
// its pod is deleted. `launched`: all workers of this attempt existed before, so a missing worker is gone.
std::optional<Failure> find_failure(const Observation& observation, const Workers& workers, bool launched);

}  // namespace gleaner::reconcile
