// Scenario: a random job, drawn from a seed: its members, its tensors, and the faults that happen.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/plan/plan.h"
#include "coordinator/roster/options.h"
#include "tests/protocol_sim/event_queue.h"

namespace gleaner::sim {

// The faults of frames between two processes.
struct Weather {
  Nanoseconds least_delay = 0, most_delay = 0;
  double late_chance = 0;  // probability that a frame takes up to late_delay longer
  Nanoseconds late_delay = 0;
  double duplicate_chance = 0;
  double survive_chance = 0;  // probability that a frame to a summer arrives after its connection broke
  bool ordered = true;        // frames keep their order within a connection and direction
};

enum class Fault {
  kDisconnect,   // a connection between a worker and a summer breaks; both ends notice it
  kCut,          // a connection loses all frames, in one direction or both, for a while or for good; no end notices it
  kCrash,        // a CPU summer's process ends
  kFreeze,       // a CPU summer stops for good; its connections stay open
  kThaw,         // a CPU summer stops for a while, and then continues from its old state
  kFlap,         // connections between two processes break again after the first bytes, for a while or for good
  kLostReport,   // a worker can't reach a summer, and its stream breaks just after the report of that
  kPause,        // a member stops for a while
  kArrive,       // a CPU summer joins
  kDrain,        // a CPU summer asks to leave
  kBandwidth,    // the bandwidth of a machine changes
  kSlow,         // by the workers' reports, some CPU summers are slow, and others are no longer
  kForget,       // the coordinator is lost, and another takes its place
  kUsurp,        // another coordinator takes over while the old one runs; members move to it one by one
  kStreamBreak,  // the stream between a member and the coordinator breaks
  kTogether,     // the coordinator and a CPU summer are lost together; another coordinator takes its place
  kDie,          // the coordinator is lost for good after all tensors are planned, possibly while it commits a plan
  kWorker,       // a worker's process ends or stops for good; only if the job may fail
  kSteps,        // by the workers' reports, steps take much longer than modelled, or much less time (step_reports.h)
};
inline constexpr uint32_t kFaultKinds = 19;
extern const char* const kFaultNames[kFaultKinds];

// The state of a CPU summer and its job when a fault happens. kRecovery counts before kChange, and both count before
// the state of the summer.
enum class Moment {
  kIdle,        // the summer has no contributions, and every worker has all results
  kHalfPushed,  // the summer has some contributions to a sum
  kSummed,      // the summer has made a result, and no worker has it yet
  kHalfPulled,  // at least one worker has the result
  kChange,      // the coordinator has proposed a plan
  kRecovery,    // a member is lost, or a new coordinator is taking up the job
  kBeginning,   // some worker has no plan yet; counts before all others
};
inline constexpr uint32_t kMoments = 7;
extern const char* const kMomentNames[kMoments];

struct FaultAt {
  Fault what = Fault::kDisconnect;
  Nanoseconds time = 0;
};

struct Scenario {
  uint64_t seed = 0;
  coordinator::Options job;           // workers, summers at the start, bandwidths, strategy, timeouts
  std::vector<plan::Tensor> tensors;  // the program's tensors
  std::vector<uint32_t> joins_at;     // by tensor: the round in which the program first uses it
  std::vector<ReduceOp> ops;          // by tensor; may alternate with the step, see op_of()
  // Some tensors accumulate, or are of groups, so workers end at different times. Therefore the last tensor is a sum of
  // all workers at the end, in which they wait for each other.
  bool meets = false;
  uint32_t steps = 1;  // of each tensor
  // A worker begins a round when all push_pulls of the last one are done. Otherwise each tensor runs on its own.
  bool barrier = false;
  std::vector<Nanoseconds> paces;  // by worker: most time between the starts of two push_pulls
  uint64_t window_bytes = 1;
  Nanoseconds stall_after = 0, defer_retry = 0, tick = 0;
  uint64_t memory_cap_bytes = 0;
  Weather weather;
  std::vector<FaultAt> faults;
  double in_place_chance = 0;
  // Workers join one after the other, and faults happen from the start, also before all members have joined.
  bool early = false;
  // The coordinator names no session, so no other coordinator can take its place: it is lost for good or not at all.
  bool single_coordinator = false;
  // Members may also be lost when the job may then end with an error that names them: before it begins, or after the
  // coordinator is lost for good. Otherwise the job has to survive all its faults.
  bool may_fail = false;
  double repeated_welcome_chance = 0;  // probability that a Welcome is repeated with another number of summers
  // Returns the index of this worker, which it tells the coordinator: a rank map gives indexes other numbers.
  uint32_t index_of_worker(uint32_t number) const {
    return job.indices.workers.empty() ? number : job.indices.workers[number];
  }
  bool indexed = false;      // summers join with an index, and the coordinator is told when one of them has crashed
  double inject_chance = 0;  // probability of each GLN_INJECT that is reached before inject_until
  Nanoseconds inject_until = 0;

  // Returns the number of push_pulls of a worker: `steps` of each of its tensors, and one of the meeting.
  uint64_t push_pulls(uint32_t worker) const;
  // Returns the most memory of a summer's sums in bytes, 0 for no limit: the cap and, while a plan brings new groups,
  // as much again (summation-service/engine/memory_budget.h).
  uint64_t most_memory_bytes() const;
  ReduceOp op_of(uint32_t tensor, uint64_t step) const;
  bool has(Fault fault) const;
  std::string to_string() const;
};

Scenario draw_scenario(uint64_t seed);

}  // namespace gleaner::sim
