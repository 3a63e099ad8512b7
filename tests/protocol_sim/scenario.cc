#include "tests/protocol_sim/scenario.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/block_size.h"
#include "common/plan/partitioner.h"
#include "common/plan/schedule_name.h"
#include "common/strategy/choice.h"
#include "tests/protocol_sim/dice.h"
#include "tests/protocol_sim/strategies.h"

namespace gleaner::sim {
namespace {

// draw_failure() and draw_changes() add the others.
constexpr uint32_t kDrawnKinds = static_cast<uint32_t>(Fault::kWorker);
constexpr char kMeeting[] = "meeting";
constexpr uint64_t kMostPartitions = 30;  // of all tensors of a program, approximately
// The most push_pulls of each worker in a job that changes strategies, so that a seed does not take long.
constexpr size_t kMostPushPulls = 80, kMostHurriedPushPulls = 160;

void draw_fleet(Scenario& scenario, Dice& dice) {
  coordinator::Options& job = scenario.job;
  job.workers = static_cast<uint32_t>(dice.chance(0.1) ? dice.between(5, 9) : dice.between(1, 4));
  job.summers = static_cast<uint32_t>(dice.between(0, 3));
  const bool equal = dice.chance(0.3);
  const auto bandwidth = [&] { return equal ? 1e9 : static_cast<double>(dice.between(1, 100)) * 1e8; };
  for (uint32_t i = 0; i < job.workers; ++i) job.worker_bits_per_second.push_back(bandwidth());
  for (uint32_t i = 0; i < job.summers; ++i) job.summer_bits_per_second.push_back(bandwidth());
  // Simulated jobs are short, so timeouts of seconds in a real job are mostly milliseconds here.
  job.start_timeout = absl::Seconds(10);
  job.deadline = absl::Seconds(2);
  job.return_timeout = absl::Seconds(1);
  job.declare_timeouts.waiting = absl::Seconds(10);
  job.summer_timeout = absl::Milliseconds(dice.between(20, 60));
  job.change_timeout = absl::Milliseconds(dice.between(20, 100));
}

// Draws tensors and a partition size that is small enough for many partitions, but not for so many that a seed takes
// long.
void draw_tensors(Scenario& scenario, Dice& dice) {
  const auto count = static_cast<size_t>(dice.between(1, 8));
  uint64_t bytes = 0;
  for (size_t i = 0; i < count; ++i) {
    plan::Tensor tensor;
    tensor.name = absl::StrCat("t", i);
    tensor.type = static_cast<DataType>(dice.between(1, 5));
    tensor.elements = dice.chance(0.1) ? dice.below(2) : dice.below(dice.chance(0.1) ? 400 : 60);
    tensor.priority = static_cast<int32_t>(dice.between(-3, 3));
    bytes += tensor.bytes();
    scenario.tensors.push_back(std::move(tensor));
  }
  const uint64_t least = std::max<uint64_t>(bytes / kMostPartitions, plan::kMinPartitionBytes);
  scenario.job.partition_bytes = least * dice.pick<uint64_t>({1, 2, 5, 20});
}

// Draws the order in which the program uses its tensors. Late tensors are used from a later round on, which is the same
// for all workers, since they run the same training script.
void draw_program(Scenario& scenario, Dice& dice) {
  scenario.steps = static_cast<uint32_t>(dice.between(1, 6));
  scenario.barrier = dice.chance(0.5);
  for (const plan::Tensor& tensor : scenario.tensors) {
    scenario.joins_at.push_back(dice.chance(0.7) ? 0 : static_cast<uint32_t>(dice.below(3)));
    const bool average = tensor.type != DataType::kInt32 && dice.chance(0.5);
    scenario.ops.push_back(average ? ReduceOp::kAverage : ReduceOp::kSum);
  }
  const Nanoseconds pace = dice.between(1, 2000) * kMicrosecond;
  for (uint32_t i = 0; i < scenario.job.workers; ++i) {
    scenario.paces.push_back(dice.chance(0.15) ? pace + 20 * kMillisecond : pace);
  }
  scenario.in_place_chance = dice.pick({0.0, 0.5, 1.0});
}

// Returns the most memory that a sum of one partition takes.
uint64_t one_sum_bytes(const Scenario& scenario) {
  return block_size(std::min<uint64_t>(scenario.job.partition_bytes, 4096)) * (scenario.job.workers + 1);
}

void draw_limits(Scenario& scenario, Dice& dice) {
  const uint64_t largest = std::min<uint64_t>(scenario.job.partition_bytes, 4096);
  scenario.window_bytes = dice.pick<uint64_t>({1, largest, 3 * largest, 10 * largest, 1 << 20});
  const uint64_t block = block_size(largest);
  const uint64_t one_sum = one_sum_bytes(scenario);
  scenario.memory_cap_bytes = dice.pick<uint64_t>({0, one_sum, one_sum + block, 2 * one_sum, 5 * one_sum});
  scenario.stall_after = dice.between(1, 10) * kMillisecond;
  scenario.defer_retry = dice.between(50, 1000) * kMicrosecond;
  scenario.tick = dice.between(500, 2000) * kMicrosecond;
}

void draw_weather(Scenario& scenario, Dice& dice) {
  Weather& weather = scenario.weather;
  weather.most_delay = dice.pick<Nanoseconds>({20, 200, 1000}) * kMicrosecond;
  weather.late_chance = dice.pick({0.0, 0.01, 0.1});
  weather.late_delay = 10 * kMillisecond;
  weather.duplicate_chance = dice.pick({0.0, 0.02, 0.3});
  weather.survive_chance = dice.pick({0.0, 0.5});
  weather.ordered = dice.chance(0.5);
}

// Gives workers other indexes than their numbers, as a rank map does.
void draw_indexes(Scenario& scenario, Dice& dice) {
  if (!scenario.indexed) return;
  std::vector<uint32_t>& indices = scenario.job.indices.workers;
  for (uint32_t index = 0; index < scenario.job.workers; ++index) indices.push_back(index);
  dice.shuffle(indices);
}

void draw_faults(Scenario& scenario, Dice& dice) {
  scenario.indexed = dice.chance(0.5);
  scenario.inject_chance = dice.pick({0.0, 0.0, 0.001, 0.02});
  scenario.inject_until = dice.between(30, 200) * kMillisecond;
  if (dice.chance(0.1)) return;
  // Each scenario has only some kinds of faults, so that each kind also happens without the others.
  std::vector<Fault> kinds;
  for (uint32_t kind = 0; kind < kDrawnKinds; ++kind) {
    if (dice.chance(0.35)) kinds.push_back(static_cast<Fault>(kind));
  }
  if (kinds.empty()) kinds.push_back(static_cast<Fault>(dice.below(kDrawnKinds)));
  const Nanoseconds until = dice.between(10, 150) * kMillisecond;
  const auto count = dice.between(1, 15);
  for (int64_t i = 0; i < count; ++i) {
    scenario.faults.push_back({kinds[dice.below(kinds.size())], dice.between(0, until)});
  }
}

void add_meeting(Scenario& scenario) {
  scenario.meets = true;
  scenario.tensors.push_back({kMeeting, 1, DataType::kInt32});
  scenario.ops.push_back(ReduceOp::kSum);
  scenario.joins_at.push_back(UINT32_MAX);
}

// Makes some tensors accumulate, in a quarter of the scenarios.
void draw_accumulation(Scenario& scenario, Dice& dice) {
  if (!dice.chance(0.25)) return;
  for (size_t i = 0; i < scenario.tensors.size(); ++i) {
    plan::Tensor& tensor = scenario.tensors[i];
    if (i > 0 && dice.chance(0.5)) continue;
    tensor.type = DataType::kInt32;  // its sums do not depend on the order
    tensor.accumulates = true;
    tensor.staleness = dice.pick<uint32_t>({plan::kUnbounded, 0, 1, 3});
    scenario.ops[i] = ReduceOp::kAccumulate;
  }
  add_meeting(scenario);
}

// Gives some tensors to groups of workers, in a quarter of the scenarios. The memory has room for a sum of each group.
void draw_groups(Scenario& scenario, Dice& dice) {
  const uint32_t workers = scenario.job.workers;
  if (workers == 1 || !dice.chance(0.25)) return;
  for (plan::Tensor& tensor : scenario.tensors) {
    if (tensor.accumulates || tensor.name == kMeeting || dice.chance(0.3)) continue;
    const auto left_out = static_cast<uint32_t>(dice.below(workers));
    for (uint32_t worker = 0; worker < workers; ++worker) {
      if (worker != left_out && dice.chance(0.6)) tensor.group.push_back(worker);
    }
    const bool is_limited = !tensor.group.empty() && scenario.memory_cap_bytes > 0;
    if (is_limited) scenario.memory_cap_bytes += one_sum_bytes(scenario);
  }
  if (!scenario.meets) add_meeting(scenario);
}

void draw_beginning(Scenario& scenario, Dice& dice) {
  scenario.early = dice.chance(0.3);
  scenario.repeated_welcome_chance = dice.pick({0.0, 0.0, 0.3});
  scenario.single_coordinator = dice.chance(0.25);
  if (!scenario.single_coordinator || dice.chance(0.5)) return;
  // Adds a fault that makes the coordinator propose a plan just when it is lost for good.
  const Nanoseconds when = dice.between(0, 20 * kMillisecond);
  scenario.faults.push_back({Fault::kDie, when});
  scenario.faults.push_back({dice.pick({Fault::kArrive, Fault::kDrain, Fault::kBandwidth}), when + kMillisecond});
}

// Adds faults after which the job may end with an error.
void draw_failure(Scenario& scenario, Dice& dice) {
  scenario.may_fail = dice.chance(0.4);
  if (!scenario.may_fail) return;
  if (dice.chance(scenario.early ? 0.3 : 0.05)) {
    scenario.faults.push_back({Fault::kWorker, dice.between(0, (scenario.early ? 20 : 60) * kMillisecond)});
  }
  if (!scenario.has(Fault::kDie)) {
    if (!dice.chance(0.1)) return;
    scenario.faults.push_back({Fault::kDie, dice.between(0, 60) * kMillisecond});
  }
  for (int64_t count = dice.between(0, 2); count > 0; --count) {
    const Nanoseconds when = dice.between(0, 100) * kMillisecond;
    scenario.faults.push_back({dice.pick({Fault::kCrash, Fault::kFreeze, Fault::kThaw}), when});
  }
}

// Makes all tensors non-empty if the coordinator may be replaced. A worker completes an empty tensor alone, as soon as
// it follows a plan that has the tensor. If that worker then leaves and the coordinator is lost, the plan is lost with
// them, and the next coordinator can't plan the tensor for the other workers.
void fill_tensors_if_the_coordinator_dies(Scenario& scenario) {
  const bool dies = scenario.has(Fault::kForget) || scenario.has(Fault::kUsurp) || scenario.has(Fault::kTogether);
  if (!dies) return;
  for (plan::Tensor& tensor : scenario.tensors) tensor.elements = std::max<uint64_t>(tensor.elements, 1);
}

// Makes a job whose steps take less than a millisecond, so that a change of strategy may come too late.
void hurry(Scenario& scenario) {
  scenario.weather.most_delay = 20 * kMicrosecond;
  scenario.weather.late_chance = 0;
  scenario.paces.assign(scenario.job.workers, 200 * kMicrosecond);
}

// Has the coordinator change strategies, or the masters of two-level, while the job runs, for which the job is a long
// one. Links are mostly equal and windows mostly large, so that several strategies take about as long. Simulated jobs
// are short, so the times of counts are milliseconds here, too.
void draw_changes(Scenario& scenario, Dice& dice) {
  coordinator::Options& job = scenario.job;
  const bool hurries = dice.chance(0.25);
  if (hurries) hurry(scenario);
  const auto most_steps =
      static_cast<uint32_t>((hurries ? kMostHurriedPushPulls : kMostPushPulls) / scenario.tensors.size());
  scenario.steps = std::min(scenario.steps * (hurries ? 20 : 5), std::max(most_steps, scenario.steps));
  scenario.window_bytes = 1 << 20;
  if (dice.chance(0.7)) {
    job.summer_bits_per_second.assign(job.summers, job.worker_bits_per_second.front());
    job.worker_bits_per_second.assign(job.workers, job.worker_bits_per_second.front());
  }
  job.reduction.count_times = {.apart = absl::Milliseconds(dice.between(1, 5)),
                               .ask_again = absl::Milliseconds(20),
                               .fresh = absl::Milliseconds(20),
                               .change_lead = absl::Milliseconds(dice.pick({0, 5, 15, 40}))};
  for (int64_t count = dice.between(8, 24); count > 0; --count) {
    scenario.faults.push_back({Fault::kSteps, dice.between(0, hurries ? 30 : 150) * kMillisecond});
  }
}

// Breaks connections early and often, so that slices are sent again while others change the memory that they came from.
void draw_broken_connections(Scenario& scenario, Dice& dice) {
  for (int64_t count = dice.between(4, 12); count > 0; --count) {
    scenario.faults.push_back({dice.pick({Fault::kDisconnect, Fault::kFlap}), dice.between(0, 30) * kMillisecond});
  }
}

// Draws the strategy. Tensors are small, so only with slow links do their sizes matter for the choice of auto.
void draw_strategy(Scenario& scenario, Dice& dice) {
  coordinator::Options& job = scenario.job;
  job.reduction.strategy = draw_strategy(job.workers, dice);
  if (schedule_of(job.reduction.strategy) != nullptr && dice.chance(0.4)) draw_broken_connections(scenario, dice);
  if (tunes_masters(job)) draw_changes(scenario, dice);
  if (!is_auto(job.reduction.strategy)) return;
  const double factor = dice.pick({1e-2, 1e-3, 1e-4});
  for (double& bandwidth : job.worker_bits_per_second) bandwidth *= factor;
  for (double& bandwidth : job.summer_bits_per_second) bandwidth *= factor;
  if (job.workers > 1 && dice.chance(0.8)) draw_changes(scenario, dice);
}

// Draws the class of bits of a job whose strategy may have both. Most are of class Schedule, in which strategies
// change.
void draw_bits(Scenario& scenario, Dice& dice) {
  coordinator::Options::Reduction& reduction = scenario.job.reduction;
  if (!is_auto(reduction.strategy)) return;
  reduction.bits = dice.chance(0.25) ? plan::Bits::kRankOrder : plan::Bits::kSchedule;
}

}  // namespace

const char* const kFaultNames[] = {"disconnect",   "cut",      "crash", "freeze",    "thaw", "flap",   "lost report",
                                   "pause",        "arrive",   "drain", "bandwidth", "slow", "forget", "usurp",
                                   "stream break", "together", "die",   "worker",    "steps"};
const char* const kMomentNames[] = {"idle",        "half pushed", "summed",   "half pulled",
                                    "plan change", "recovery",    "beginning"};

ReduceOp Scenario::op_of(uint32_t tensor, uint64_t step) const {
  const bool may_average = tensors[tensor].type != DataType::kInt32;
  const bool alternates = tensor % 3 == 2 && step % 2 == 1;
  return alternates && may_average && ops[tensor] == ReduceOp::kSum ? ReduceOp::kAverage : ops[tensor];
}

uint64_t Scenario::push_pulls(uint32_t worker) const {
  const auto own = static_cast<uint64_t>(
      std::ranges::count_if(tensors, [worker](const plan::Tensor& tensor) { return tensor.has(worker); }));
  return meets ? (own - 1) * steps + 1 : own * steps;
}

uint64_t Scenario::most_memory_bytes() const {
  const bool has_groups =
      std::ranges::any_of(tensors, [](const plan::Tensor& tensor) { return !tensor.group.empty(); });
  return has_groups ? 2 * memory_cap_bytes : memory_cap_bytes;
}

bool Scenario::has(Fault fault) const {
  return std::ranges::any_of(faults, [fault](const FaultAt& each) { return each.what == fault; });
}

std::string Scenario::to_string() const {
  return absl::StrCat("seed ", seed, ": ", job.workers, " workers, ", job.summers, " summers, ",
                      name_of(job.reduction.strategy), ", bits ", plan::name_of(coordinator::bits_of(job.reduction)),
                      ", ", tensors.size(),
                      meets ? " tensors, some accumulate or are of groups, partitions of " : " tensors, partitions of ",
                      job.partition_bytes, " bytes, ", steps, " steps, ", barrier ? "barrier" : "free", ", window ",
                      window_bytes, ", cap ", memory_cap_bytes, ", ", faults.size(), " faults, duplicates ",
                      weather.duplicate_chance, weather.ordered ? ", ordered" : ", reordered",
                      single_coordinator ? ", a single coordinator" : "", may_fail ? ", may fail" : "");
}

Scenario draw_scenario(uint64_t seed) {
  Dice dice(seed);
  Scenario scenario;
  scenario.seed = seed;
  draw_fleet(scenario, dice);
  draw_tensors(scenario, dice);
  draw_program(scenario, dice);
  draw_limits(scenario, dice);
  draw_weather(scenario, dice);
  draw_faults(scenario, dice);
  fill_tensors_if_the_coordinator_dies(scenario);
  Dice more(seed ^ 0xacc);
  draw_accumulation(scenario, more);
  Dice groups(seed ^ 0x6704);
  draw_groups(scenario, groups);
  Dice indexes(seed ^ 0x1dec5);
  draw_indexes(scenario, indexes);
  draw_beginning(scenario, more);
  Dice last(seed ^ 0xfa11);
  draw_failure(scenario, last);
  Dice strategy(seed ^ 0x57a7);
  draw_strategy(scenario, strategy);
  Dice bits(seed ^ 0xb175);
  draw_bits(scenario, bits);
  return scenario;
}

}  // namespace gleaner::sim
