// JobMemory is the state that the Autoscaler keeps of one job between rounds. Functions add removals of summers to it
// and to a verdict.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "operator/autoscale/autoscale.h"
#include "operator/autoscale/idle_summers.h"
#include "operator/autoscale/node_pauses.h"

namespace gleaner::autoscale {

struct JobMemory {
  // Begins with a job that the Autoscaler sees for the first time. The age of the youngest summer gives the time of the
  // last addition, even if the job began with that summer or an earlier leader added it.
  JobMemory(const Job& job, const Settings& settings, absl::Duration now);

  std::map<uint32_t, Removal> removals;     // removals not carried out yet, by summer
  std::map<uint32_t, std::string> running;  // nodes of running summers that were not told to leave, by summer
  // True until the job has its first summers. Between these there is no pause: each is added as soon as the one before
  // it has a machine.
  bool beginning;
  absl::Duration added = -absl::InfiniteDuration();  // when the youngest summer was added
  std::string added_node;
  NodePauses pauses;
  IdleSummers idle;
};

// Adds the removal of a summer to the job's memory and verdict. The verdict's reason is that of its first removal.
void remove_summer(Removal removal, JobMemory& memory, Verdict& verdict);

// Returns the indices of the summers that the verdict removes.
std::vector<uint32_t> removed_summers(const Verdict& verdict);

// Returns the number of summers that are neither leaving nor removed by the verdict.
uint32_t count_staying(const Job& job, const Verdict& verdict);

}  // namespace gleaner::autoscale
