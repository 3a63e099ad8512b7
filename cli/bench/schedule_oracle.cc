#include "cli/bench/schedule_oracle.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/bench/data.h"
#include "common/base/accumulator.h"
#include "common/base/status_macros.h"
#include "common/collective/algorithms.h"
#include "common/collective/oracle.h"

namespace gleaner::cli {

absl::StatusOr<TensorPlan> parse_tensor_plan(const std::string& text) try {
  const auto json = nlohmann::json::parse(text);
  TensorPlan plan;
  collective::Spec spec;
  json.at("algorithm").get_to(spec.algorithm);
  json.at("stages").get_to(spec.factors);
  json.at("radix").get_to(spec.radix);
  json.at("blocks").get_to(spec.blocks);
  json.at("ranks").get_to(spec.rank_of);
  json.at("group_sizes").get_to(spec.group_sizes);
  json.at("global_chunks").get_to(spec.masters.global);
  json.at("local_chunks").get_to(spec.masters.local);
  if (spec.algorithm != plan::kSummersStrategy) plan.schedule = std::move(spec);
  json.at("partition_bytes").get_to(plan.partition_bytes);
  json.at("from").get_to(plan.from);
  return plan;
} catch (const nlohmann::json::exception& error) {
  return absl::InvalidArgumentError(absl::StrCat("not the plan of a tensor: ", error.what()));
}

absl::StatusOr<ScheduleOracle> ScheduleOracle::make(uint64_t seed, uint32_t workers, uint32_t local_ranks,
                                                    const TensorPlan& plan) {
  GLN_ASSIGN_OR_RETURN(collective::Schedule schedule, collective::make_schedule(*plan.schedule, workers));
  GLN_ASSIGN_OR_RETURN(const kernels::Kernels scalar, kernels::Kernels::choose("scalar"));
  return ScheduleOracle(seed, workers, local_ranks, plan, std::move(schedule), scalar);
}

ScheduleOracle::ScheduleOracle(uint64_t seed, uint32_t workers, uint32_t local_ranks, const TensorPlan& plan,
                               collective::Schedule schedule, const kernels::Kernels& scalar)
    : seed_(seed),
      workers_(workers),
      local_ranks_(local_ranks),
      plan_(plan),
      schedule_(std::move(schedule)),
      scalar_(scalar) {}

// Returns the contribution of a worker: its only rank's data, or the partial sum of its ranks' data.
std::vector<std::byte> ScheduleOracle::contribution(DataType type, uint64_t step, uint64_t first, size_t bytes,
                                                    uint32_t worker) const {
  std::vector<std::vector<std::byte>> of_ranks(local_ranks_, std::vector<std::byte>(bytes));
  std::vector<const std::byte*> sources;
  for (uint32_t local = 0; local < local_ranks_; ++local) {
    BenchData(seed_, step, worker * local_ranks_ + local).fill(type, first, of_ranks[local]);
    sources.push_back(of_ranks[local].data());
  }
  if (local_ranks_ == 1) return std::move(of_ranks.front());
  const DataType partial = accumulator_of(type);
  const size_t elements = bytes / size_of(type);
  std::vector<std::byte> sum(elements * size_of(partial));
  scalar_.sum(type, partial, sources, sum.data(), elements, 1);
  return sum;
}

absl::StatusOr<std::optional<Mismatch>> ScheduleOracle::check(DataType type, uint64_t step, uint64_t first,
                                                              ConstBytes got) const {
  const collective::Reduction reduction{local_ranks_ == 1 ? type : accumulator_of(type), type, 1};
  const bool is_in_order_of_workers =
      plan_.schedule->rank_of.empty() || schedule_.postcondition == collective::Postcondition::kAllGather;
  size_t at = 0;
  for (const uint32_t bytes : plan_.partition_bytes) {
    if (bytes > got.size() - at || bytes % size_of(type) != 0) break;
    const uint64_t element = at / size_of(type);
    std::vector<std::vector<std::byte>> inputs(workers_);
    for (uint32_t worker = 0; worker < workers_; ++worker) {
      const uint32_t rank = is_in_order_of_workers ? worker : plan_.schedule->rank_of[worker];
      inputs[rank] = contribution(type, step, first + element, bytes, worker);
    }
    GLN_ASSIGN_OR_RETURN(const auto results, collective::execute_all_reduce(schedule_, reduction, std::move(inputs)));
    if (auto mismatch = first_mismatch(type, results.front(), got.subspan(at, bytes))) {
      mismatch->element += element;
      return mismatch;
    }
    at += bytes;
  }
  if (at == got.size()) return std::nullopt;
  return absl::InvalidArgumentError(
      absl::StrCat("the plan's partitions cover ", at, " bytes of a tensor of ", got.size(), " bytes"));
}

}  // namespace gleaner::cli
