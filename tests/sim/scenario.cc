#include "tests/sim/scenario.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/plan/partitioner.h"
#include "tests/sim/dice.h"

namespace gleaner::sim {
namespace {

constexpr uint64_t kMostPartitions = 30;  // about, of the tensors that a plan adds

plan::Fleet draw_fleet(Dice& dice) {
  plan::Fleet fleet;
  const auto workers = dice.chance(0.1) ? dice.between(5, 9) : dice.between(1, 4);
  const auto summers = dice.between(0, 3);
  const bool equal = dice.chance(0.3);
  const auto bandwidth = [&] { return equal ? 1e9 : static_cast<double>(dice.between(1, 100)) * 1e8; };
  for (int64_t i = 0; i < workers; ++i) fleet.worker_bits_per_second.push_back(bandwidth());
  for (int64_t i = 0; i < summers; ++i) fleet.summer_bits_per_second.push_back(bandwidth());
  return fleet;
}

std::vector<plan::Tensor> draw_tensors(Dice& dice, size_t known, size_t count) {
  std::vector<plan::Tensor> tensors;
  for (size_t i = 0; i < count; ++i) {
    plan::Tensor tensor;
    tensor.name = absl::StrCat("t", known + i);
    tensor.type = static_cast<DataType>(dice.between(1, 5));
    tensor.elements = dice.chance(0.1) ? dice.below(2) : dice.below(dice.chance(0.1) ? 400 : 60);
    tensor.priority = static_cast<int32_t>(dice.between(-3, 3));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

// Partitions small enough to make many of them, and not so many that a seed takes long.
plan::PartitionOptions draw_options(Dice& dice, const std::vector<plan::Tensor>& tensors) {
  uint64_t bytes = 0;
  for (const plan::Tensor& tensor : tensors) bytes += tensor.bytes();
  const uint64_t least = std::max<uint64_t>(bytes / kMostPartitions, plan::kMinPartitionBytes);
  return {.partition_bytes = least * dice.pick<uint64_t>({1, 2, 5, 20})};
}

void draw_plans(Scenario& scenario, Dice& dice) {
  const plan::Fleet fleet = draw_fleet(dice);
  auto tensors = draw_tensors(dice, 0, dice.below(6));
  plan::Plan plan = *plan::make_plan(fleet, tensors, draw_options(dice, tensors));
  plan.local_ranks = dice.pick<uint32_t>({1, 1, 2, 3, 8});
  plan.epoch = static_cast<uint32_t>(dice.between(1, 5));
  plan.fence = static_cast<uint32_t>(dice.between(1, plan.epoch));
  scenario.plans.push_back(std::make_shared<plan::Plan>(plan));
  scenario.plan_times.push_back(0);
  const size_t extensions = plan.tensors.empty() ? dice.between(1, 2) : dice.pick<size_t>({0, 0, 1, 2});
  for (size_t i = 0; i < extensions; ++i) {
    const uint32_t epoch = plan.epoch + static_cast<uint32_t>(dice.between(1, 3));
    const uint32_t fence = plan.fence;
    tensors = draw_tensors(dice, plan.tensors.size(), dice.between(1, 3));
    plan = *plan::extend_plan(plan, tensors, draw_options(dice, tensors));
    plan.epoch = epoch;
    plan.fence = fence;
    scenario.plans.push_back(std::make_shared<plan::Plan>(plan));
    scenario.plan_times.push_back(dice.between(0, 20 * kMillisecond));
  }
}

// Per tensor: a round of the program. Tensors that come with a later plan are used from some later round on, the same
// for all workers, as the same training script would.
void draw_program(Scenario& scenario, Dice& dice) {
  const auto workers = scenario.last_plan().workers;
  scenario.steps = static_cast<uint32_t>(dice.between(1, 4));
  scenario.barrier = dice.chance(0.5);
  for (const plan::Tensor& tensor : scenario.last_plan().tensors) {
    const bool from_start = scenario.joins_at.size() < scenario.plans.front()->tensors.size();
    scenario.joins_at.push_back(from_start ? 0 : static_cast<uint32_t>(dice.below(3)));
    const bool average = tensor.type != DataType::kInt32 && dice.chance(0.5);
    scenario.ops.push_back(average ? ReduceOp::kAverage : ReduceOp::kSum);
  }
  const Nanoseconds pace = dice.between(1, 500) * kMicrosecond;
  for (uint32_t i = 0; i < workers; ++i) {
    scenario.paces.push_back(dice.chance(0.15) ? pace + 20 * kMillisecond : pace);
  }
  scenario.in_place_chance = dice.pick({0.0, 0.5, 1.0});
}

void draw_limits(Scenario& scenario, Dice& dice) {
  uint64_t largest = 1;
  for (const plan::Partition& partition : scenario.last_plan().partitions) {
    largest = std::max<uint64_t>(largest, partition.bytes);
  }
  scenario.window_bytes = dice.pick<uint64_t>({1, largest, 3 * largest, 10 * largest, 1 << 20});
  const uint64_t one_sum = largest * (scenario.last_plan().workers + 1);
  scenario.memory_cap_bytes = dice.pick<uint64_t>({0, one_sum, one_sum + largest, 2 * one_sum, 5 * one_sum});
  scenario.stall_after = dice.between(1, 10) * kMillisecond;
  scenario.defer_retry = dice.between(50, 1000) * kMicrosecond;
  scenario.tick = dice.between(500, 2000) * kMicrosecond;
}

void draw_faults(Scenario& scenario, Dice& dice) {
  Weather& weather = scenario.weather;
  weather.most_delay = dice.pick<Nanoseconds>({20, 200, 1000}) * kMicrosecond;
  weather.late_chance = dice.pick({0.0, 0.01, 0.1});
  weather.late_delay = 10 * kMillisecond;
  weather.duplicate_chance = dice.pick({0.0, 0.02, 0.3});
  weather.survive_chance = dice.pick({0.0, 0.5});
  weather.ordered = dice.chance(0.5);
  if (dice.chance(0.6)) scenario.disconnects = static_cast<uint32_t>(dice.between(1, 12));
  scenario.fault_time = dice.between(10, 50) * kMillisecond;
}

}  // namespace

ReduceOp Scenario::op_of(uint32_t tensor, uint64_t step) const {
  const bool may_average = last_plan().tensors[tensor].type != DataType::kInt32;
  const bool alternates = tensor % 3 == 2 && step % 2 == 1;
  return alternates && may_average && ops[tensor] == ReduceOp::kSum ? ReduceOp::kAverage : ops[tensor];
}

std::string Scenario::to_string() const {
  const plan::Plan& plan = last_plan();
  return absl::StrCat("seed ", seed, ": ", plan.workers, " workers, ", plan.summers(), " summers, ", plan.local_ranks,
                      " local ranks, ", plan.tensors.size(), " tensors in ", plan.partitions.size(), " partitions, ",
                      plans.size(), " plans, ", steps, " steps, ", barrier ? "barrier" : "free", ", window ",
                      window_bytes, ", cap ", memory_cap_bytes, ", ", disconnects, " disconnects, duplicates ",
                      weather.duplicate_chance, weather.ordered ? ", ordered" : ", reordered");
}

Scenario draw_scenario(uint64_t seed) {
  Dice dice(seed);
  Scenario scenario;
  scenario.seed = seed;
  draw_plans(scenario, dice);
  draw_program(scenario, dice);
  draw_limits(scenario, dice);
  draw_faults(scenario, dice);
  return scenario;
}

}  // namespace gleaner::sim
