// One random job, drawn from a seed: who takes part, what is summed, and what befalls them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/plan/plan.h"
#include "operator/coordinator/options.h"
#include "tests/sim/event_queue.h"

namespace gleaner::sim {

// What may happen to frames between two members.
struct Weather {
  Nanoseconds least_delay = 0, most_delay = 0;
  double late_chance = 0;  // of a frame that takes up to late_delay
  Nanoseconds late_delay = 0;
  double duplicate_chance = 0;
  double survive_chance = 0;  // of a frame to a summer to arrive after its connection is gone
  bool ordered = true;        // within a connection and direction
};

enum class Fault {
  kDisconnect,   // a connection between a worker and a summer breaks, both see it
  kCut,          // nothing passes between them, either way or one way, for a while or for good, and nobody is told
  kCrash,        // a CPU summer
  kFreeze,       // the same, but its connections stay open
  kThaw,         // the same, but it goes on after a while as if nothing had happened
  kFlap,         // connections between two come up and break again with the first bytes, for a while or for good
  kLostReport,   // a worker can't reach a summer, and its stream breaks with the report of that
  kPause,        // a member does nothing for a while
  kArrive,       // a CPU summer comes
  kDrain,        // one wants to leave
  kBandwidth,    // a machine's
  kForget,       // the coordinator is lost, and another takes its place
  kUsurp,        // another takes its place, and members go over to it one by one
  kStreamBreak,  // between a member and the coordinator
  kTogether,     // the coordinator is lost, and a CPU summer with it; another coordinator takes its place
  kDie,          // the coordinator is lost for good, once all tensors are planned; also between commits of a plan
};
inline constexpr uint32_t kFaultKinds = 16;
extern const char* const kFaultNames[kFaultKinds];

// What a CPU summer, and its job, were at when something happened. The later ones count before the earlier.
enum class Moment {
  kIdle,        // before the first push of a partition, or after everybody has its result
  kHalfPushed,  // some contributions are there
  kSummed,      // a result is made, nobody has it yet
  kHalfPulled,  // somebody has it
  kChange,      // a plan that makes steps faster is on its way
  kRecovery,    // a plan without a lost summer is on its way, or a coordinator takes up the job
};
inline constexpr uint32_t kMoments = 6;
extern const char* const kMomentNames[kMoments];

struct FaultAt {
  Fault what = Fault::kDisconnect;
  Nanoseconds time = 0;
};

struct Scenario {
  uint64_t seed = 0;
  coordinator::Options job;           // workers, summers at the start, bandwidths, timeouts
  std::vector<plan::Tensor> tensors;  // of the program
  std::vector<uint32_t> joins_at;     // per tensor: the round in which the program first uses it
  std::vector<ReduceOp> ops;          // per tensor; may alternate with the step, see op_of()
  // Some tensors accumulate, and workers end at different times; so the last tensor is a sum in which they meet.
  bool meets = false;
  uint32_t steps = 1;              // per tensor
  bool barrier = false;            // a worker begins a round when all of the last is done; else tensors run freely
  std::vector<Nanoseconds> paces;  // per worker: most time between two starts
  uint64_t window_bytes = 1;
  Nanoseconds stall_after = 0, defer_retry = 0, tick = 0;
  uint64_t memory_cap_bytes = 0;
  Weather weather;
  std::vector<FaultAt> faults;
  double in_place_chance = 0;
  // Members come one after the other, and faults happen from the start: also while the coordinator gathers them.
  bool early = false;
  // The coordinator names no session: none can take its place, so it is lost for good or not at all.
  bool single_coordinator = false;
  double repeated_welcome_chance = 0;  // of each Welcome, with another number of summers
  bool indexed = false;          // summers say which they are, and somebody tells the coordinator when they have ended
  double inject_chance = 0;      // of each GLN_INJECT that is reached,
  Nanoseconds inject_until = 0;  // before this time

  uint64_t push_pulls() const { return (tensors.size() - (meets ? 1 : 0)) * steps + (meets ? 1 : 0); }
  ReduceOp op_of(uint32_t tensor, uint64_t step) const;
  bool has(Fault fault) const;
  std::string to_string() const;
};

Scenario draw_scenario(uint64_t seed);

}  // namespace gleaner::sim
