// choose_summers() chooses the machines of a job's summers by the bandwidth model. Pure.
//
// Where an uplink of known bandwidth parts the machines of the workers and the candidates, each next summer goes to the
// machine with which a step is shortest by the links and the uplinks (fabric::StepBound). In each group of the cluster
// the fastest candidate stands for all others, so a choice costs O(groups · (members + groups)), and O(candidates)
// once. Elsewhere only the bandwidths of the links count (BytePS §4.1), and candidates are taken by their score. In
// both cases machines near the workers come first among equally good ones.
//
// The autoscaler, which adds and removes summers later, goes by the same bounds (operator/autoscale/worth.h).
#pragma once

#include <string>
#include <vector>

#include "common/api/training_job.h"
#include "common/fabric/fabric.h"
#include "common/placement/placement.h"
#include "common/plan/model.h"

namespace gleaner::reconcile {

// The workers of a job, for which summers are chosen.
struct WorkerMachines {
  plan::Fleet fleet;               // without summers
  std::vector<std::string> nodes;  // of each worker; a worker on no known node is taken to be at the core
};

// Returns the candidates on which to start summers, best first: as many as shorten a step by the share `min_gain` each,
// within the job's min and max. Returns fewer than min, even none, if there are not enough machines. `candidates`: best
// first, by score.
std::vector<placement::Candidate> choose_summers(const api::TrainingJob& job, const fabric::Fabric& fabric,
                                                 const WorkerMachines& workers,
                                                 std::vector<placement::Candidate> candidates, double min_gain = 0.01);

// Moves candidates near the workers before others of the same bandwidth (fabric::Nearness). The places that
// candidates of one bandwidth have together stay the same.
void put_near_first(const fabric::Fabric& fabric, const std::vector<std::string>& worker_nodes,
                    std::vector<placement::Candidate>& candidates);

}  // namespace gleaner::reconcile
