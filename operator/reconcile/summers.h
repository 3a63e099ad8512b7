// Functions that build the pods of a job's summers, and find them among its pods and the members of its session.
// Pure.
#pragma once

#include <vector>

#include "operator/reconcile/observation.h"
#include "operator/reconcile/pods.h"
#include "operator/reconcile/status_update.h"

namespace gleaner::reconcile {

// Returns the running summers of this attempt, by index, up to the first that does not run. Only those take part from
// the start, since a plan numbers its summers without gaps.
std::vector<const PodView*> running_summers(const Observation& observation);

// Returns all summers of this attempt, by index.
std::vector<const PodView*> summers_of_attempt(const Observation& observation);

// Returns the request by which placement judges machines for a summer of this job: the requests of summer_pod(),
// without the machines of the job's workers.
placement::SummerRequest summer_request(const api::TrainingJob& job, const std::vector<std::string>& worker_nodes);

// Returns whether the job may have summers.
bool wants_summers(const api::TrainingJob& job);

// Returns the summer of this index in the session; null: there is none.
const coordinator::MemberState* find_summer_member(const coordinator::JobState& session, uint32_t index);

// Returns the step that creates new summers for these machines, with new numbers, and records the next number and the
// change in `update`. `cause` and `why` explain them to people.
//
// The numbers of summers only grow within an attempt. status.nextSummer is written before the pod with that number is
// created, so operators that take over from each other neither reuse a name nor create a summer twice.
CreateSummers add_summers(const Observation& observation, const PodSettings& settings,
                          const std::vector<placement::Candidate>& machines, const std::string& cause,
                          const std::string& why, StatusUpdate& update);

}  // namespace gleaner::reconcile
