// Why an attempt can't go on, and what follows from it.
//
// A lost worker or summer ends the step for all others, which then end with errors of their own: so the first to go
// decides, and what the cluster did to a pod counts before what the pod did. Exit codes as in Kubeflow's training
// operator: 1 to 127 is a fault in the program that trying again won't mend, 128 to 255 (a signal) is worth another
// try.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operator/reconcile/decide.h"

namespace gleaner::reconcile {

struct Failure {
  enum class Kind {
    kPermanent,    // the job fails
    kOwn,          // tried again, counted against backoffLimit
    kInterrupted,  // by the cluster: tried again, not counted
    kUndecided,    // something is wrong; look again soon
  };
  Kind kind = Kind::kUndecided;
  std::string reason;   // CamelCase
  std::string message;  // which pod, what happened
  std::vector<std::string> confirm_missing;
};

// The attempt's pods by index, null where there is none.
std::vector<const PodView*> members_of_attempt(const Observed& observed, const char* role, uint32_t count);

// None: nothing is wrong. `launched`: all workers of this attempt have been seen.
std::optional<Failure> find_failure(const Observed& observed, bool launched);

}  // namespace gleaner::reconcile
