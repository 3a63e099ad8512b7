// How many summers a job gets, and which of them count.
#pragma once

#include <vector>

#include "operator/reconcile/decide.h"

namespace gleaner::reconcile {

// The candidates to start summers for, best first: as many as shorten a step by `worth` of it each, within min and max
// of the job. Fewer than min where there are not so many machines to spare: none at all is fine.
std::vector<placement::Candidate> choose_summers(const types::TrainingJob& job, const std::vector<double>& worker_bits,
                                                 std::vector<placement::Candidate> candidates, double worth = 0.01);

// The summers of this attempt that run, up to the first that does not: seats are numbered without gaps.
std::vector<const PodView*> running_summers(const Observed& observed);

// All of this attempt, by index.
std::vector<const PodView*> summers_of_attempt(const Observed& observed);

// What placement is asked for a summer of this job: the requests of summer_pod(), and no machine with one of its
// workers.
placement::SummerRequest summer_request(const types::TrainingJob& job, const std::vector<std::string>& worker_nodes);

// True when the job may have summers at all.
bool wants_summers(const types::TrainingJob& job);

}  // namespace gleaner::reconcile
