#include "coordinator/planning/master_tuning.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/backoff.h"
#include "common/base/status_macros.h"
#include "common/base/units.h"
#include "common/collective/algorithms.h"
#include "common/strategy/choice.h"
#include "common/strategy/masters.h"

namespace gleaner::coordinator {
namespace {

using collective::MasterCounts;
using collective::Spec;

constexpr uint32_t kFewestWorkers = 3, kMostWorkers = 64;
constexpr int kMostMoves = 256;  // of one plan
constexpr absl::Duration kFirstPause = absl::Seconds(5);
constexpr absl::Duration kLongestPause = absl::Minutes(5);

bool may_tune(const Options& options) {
  const Spec* const schedule = schedule_of(options.reduction.strategy);
  if (schedule == nullptr || schedule->algorithm != "two-level" || options.workers < kFewestWorkers ||
      options.workers > kMostWorkers) {
    return false;
  }
  const strategy::JobNetwork* const network = options.reduction.network.get();
  return network == nullptr || network->source != strategy::RankMapSource::kIdentity;
}

// Returns the values by rank, of those by worker.
std::vector<double> by_rank(const Spec& schedule, const std::vector<double>& by_worker) {
  std::vector<double> values = by_worker;
  for (size_t worker = 0; worker < schedule.rank_of.size(); ++worker) {
    values[schedule.rank_of[worker]] = by_worker[worker];
  }
  return values;
}

uint32_t worker_of(const Spec& schedule, uint32_t rank) {
  if (schedule.rank_of.empty()) return rank;
  return static_cast<uint32_t>(std::ranges::find(schedule.rank_of, rank) - schedule.rank_of.begin());
}

MasterCounts masters_of(const Spec& schedule, const collective::Groups& groups, uint32_t ranks) {
  return schedule.masters.empty() ? strategy::even_masters(groups, strategy::kChunksOfEachRank * ranks)
                                  : schedule.masters;
}

// Returns whether a schedule sums some tensor. Owners sum tensors that accumulate.
bool has_schedules(const plan::Plan& plan) {
  return std::ranges::any_of(plan.tensors, [](const plan::Tensor& tensor) { return tensor.schedule.has_value(); });
}

std::string name_with_masters(const Spec& schedule) {
  if (schedule.masters.empty()) return absl::StrCat(collective::name_of(schedule), " with even masters");
  return absl::StrCat(collective::name_of(schedule), " with ", absl::StrJoin(schedule.masters.local, " "),
                      " local chunks");
}

}  // namespace

MasterTuning::MasterTuning(const Options& options)
    : tunes_(may_tune(options)), counts_(options.reduction.count_times) {}

uint32_t MasterTuning::schedule_of_new(const plan::Plan& plan) {
  for (const plan::Tensor& tensor : plan.tensors) {
    if (tensor.schedule.has_value()) return *tensor.schedule;
  }
  return 0;
}

absl::Status MasterTuning::begin(const plan::Plan& in_force) {
  const Spec& schedule = in_force.schedules[schedule_of_new(in_force)];
  GLN_ASSIGN_OR_RETURN(const collective::Schedule made, collective::make_schedule(schedule, in_force.workers));
  groups_ = made.stages[0];
  const strategy::AutotuneOptions weights{.load_weight = 0};
  autotune_.emplace(groups_, masters_of(schedule, groups_, in_force.workers), weights);
  return absl::OkStatus();
}

absl::Status MasterTuning::on_measured(const plan::Plan& in_force, const StepTime& step, absl::Duration now) {
  const auto above_zero = [](double value) { return value > 0; };
  if (!tunes_ || !has_schedules(in_force) || step.epoch != in_force.epoch || !above_zero(step.seconds) ||
      !above_zero(step.bytes)) {
    return absl::OkStatus();
  }
  if (!autotune_.has_value()) GLN_RETURN_IF_ERROR(begin(in_force));
  const Spec& schedule = in_force.schedules[schedule_of_new(in_force)];
  const std::vector<double> before = links_.ratios();
  const bool has_changed = links_.on_measured(by_rank(schedule, step.link_bits_per_second));
  if (has_changed) {
    hope(before);
    is_due_ = true;
    wish_.reset();
  }
  judge(in_force, 1 / step.seconds, has_changed, now);
  if (!is_due_ || wish_.has_value() || now < next_ || !links_.are_known()) return absl::OkStatus();
  is_due_ = false;
  std::vector<double> bits_per_second = links_.bits_per_second();
  for (size_t rank = 0; rank < hopes_.size(); ++rank) {
    if (hopes_[rank]) bits_per_second[rank] /= links_.ratios()[rank];
  }
  tune(in_force,
       {1 / step.seconds, step.bytes, std::move(bits_per_second), by_rank(schedule, step.round_trip_seconds)});
  return absl::OkStatus();
}

void MasterTuning::hope(const std::vector<double>& before) {
  hopes_.resize(links_.ratios().size(), false);
  for (size_t rank = 0; rank < before.size(); ++rank) {
    const double ratio = links_.ratios()[rank];
    if (ratio != before[rank]) hopes_[rank] = before[rank] < ratio && ratio < 1 && before[rank] > 0;
  }
}

// Finds out whether the last change has helped.
void MasterTuning::judge(const plan::Plan& in_force, double speed, bool has_link_changed, absl::Duration now) {
  if (!trial_.has_value()) return;
  const Trial trial = *std::exchange(trial_, std::nullopt);
  if (in_force.epoch != trial.epoch) return;  // the speed of another plan shows nothing
  if (speed >= trial.speed_before * (1 + kHelps)) {
    pause_ = pause_ > kFirstPause ? pause_ / 2 : absl::ZeroDuration();
    return;
  }
  hopes_.assign(hopes_.size(), false);
  pause_ = next_pause(pause_, kFirstPause, kLongestPause);
  next_ = now + pause_;
  if (speed >= trial.speed_before * (1 - kHarms) || has_link_changed) return;
  is_due_ = false;
  wish(in_force, in_force.schedules[trial.schedule_before], 0, "steps have become longer with these masters");
}

void MasterTuning::tune(const plan::Plan& in_force, const strategy::Autotune::Measured& measured) {
  const Spec& schedule = in_force.schedules[schedule_of_new(in_force)];
  const MasterCounts present = masters_of(schedule, groups_, in_force.workers);
  const auto longest = [&](const MasterCounts& counts) {
    return strategy::longest_time(counts, groups_, measured.bits_per_second);
  };
  // As balanced as can be, also where the slowest rank has nothing to give away.
  MasterCounts best =
      strategy::quicktune(groups_, strategy::kChunksOfEachRank * in_force.workers, measured.bits_per_second);
  autotune_->set_counts(present);
  for (int moves = 0; moves < kMostMoves; ++moves) {
    const std::optional<MasterCounts> next = autotune_->next_weights(measured);
    if (!next.has_value()) break;
    if (longest(*next) < longest(best)) best = *next;
  }
  Spec wanted = schedule;
  wanted.masters = best;
  if (in_force.schedules.size() == plan::kMaxSchedules) {
    const auto masters = [&](const Spec& each) { return masters_of(each, groups_, in_force.workers); };
    wanted =
        *std::ranges::min_element(in_force.schedules, {}, [&](const Spec& each) { return longest(masters(each)); });
    best = masters(wanted);
  }
  if (longest(best) >= longest(present) * (1 - kLeastGain)) return;
  wish(in_force, wanted, measured.speed, why(schedule));
  const auto chunks = static_cast<double>(strategy::kChunksOfEachRank * in_force.workers);
  wish_->change.seconds_before = longest(present) * measured.bytes * 8 / chunks;
  wish_->change.seconds_after = longest(best) * measured.bytes * 8 / chunks;
  absl::StrAppend(&wish_->change.why, ", so the slowest worker sends for ", format_seconds(wish_->change.seconds_after),
                  " a step instead of ", format_seconds(wish_->change.seconds_before));
}

void MasterTuning::wish(const plan::Plan& in_force, Spec schedule, double speed, std::string why) {
  const uint32_t present = schedule_of_new(in_force);
  Wish wish{in_force.epoch, std::move(schedule), present, speed, {}};
  for (const plan::Tensor& tensor : in_force.tensors) {
    if (tensor.schedule != present) continue;
    ++wish.change.tensors;
    wish.change.bytes += tensor.bytes();
  }
  wish.change.from = name_with_masters(in_force.schedules[present]);
  wish.change.to = name_with_masters(wish.schedule);
  wish.change.why = std::move(why);
  wish_ = std::move(wish);
}

// Names the link that differs most from the others, or one that has become faster.
std::string MasterTuning::why(const Spec& schedule) const {
  if (const auto hope = std::ranges::find(hopes_, true); hope != hopes_.end()) {
    const auto rank = static_cast<uint32_t>(hope - hopes_.begin());
    return absl::StrCat("the link of worker ", worker_of(schedule, rank), " has become faster");
  }
  const auto difference = [](double ratio) { return std::abs(std::log(ratio)); };
  const auto most = std::ranges::max_element(links_.ratios(), {}, difference);
  if (*most == 1) return "the links of all workers are about as fast";
  const auto rank = static_cast<uint32_t>(most - links_.ratios().begin());
  return absl::StrCat("the link of worker ", worker_of(schedule, rank), " is ",
                      absl::StrFormat("%.1f", std::max(*most, 1 / *most)), " times ", *most < 1 ? "slower" : "faster",
                      " than the median one");
}

bool MasterTuning::ask_for_counts(const plan::Plan& in_force, absl::Duration now) {
  return wish_.has_value() && wish_->epoch == in_force.epoch && counts_.ask(in_force.epoch, now);
}

std::optional<plan::Plan> MasterTuning::make_change(const plan::Plan& in_force, uint32_t epoch, absl::Duration now) {
  const size_t tensors = in_force.tensors.size();
  if (!wish_.has_value() || wish_->epoch != in_force.epoch || !counts_.are_known(in_force.epoch, tensors, now)) {
    return std::nullopt;
  }
  plan::Plan next = in_force;
  const std::optional<uint32_t> wanted = strategy::index_of(wish_->schedule, next);
  if (!wanted.has_value()) return std::nullopt;  // the plan has no room for another schedule
  for (uint32_t id = 0; id < tensors; ++id) {
    plan::Tensor& tensor = next.tensors[id];
    if (!tensor.schedule.has_value()) continue;
    tensor.schedule = wanted;
    tensor.schedule_from = std::max(counts_.after_next_plan(id, now), tensor.schedule_from + 1);
  }
  counts_.reset();
  proposed_ = wish_;
  proposed_->epoch = proposed_->change.epoch = epoch;
  return next;
}

std::optional<StrategyChange> MasterTuning::on_plan(const plan::Plan& plan) {
  std::optional<Wish> made = std::exchange(proposed_, std::nullopt);
  counts_.reset();
  if (!made.has_value() || made->epoch != plan.epoch) {
    if (wish_.has_value()) wish_->epoch = plan.epoch;
    return std::nullopt;
  }
  wish_.reset();
  if (made->speed > 0) {
    is_due_ = true;
    trial_ = {plan.epoch, made->speed, made->schedule_before};
  }
  return std::move(made->change);
}

std::optional<Spec> MasterTuning::tuned(const plan::Plan& in_force) const {
  const uint32_t present = schedule_of_new(in_force);
  return tunes_ && present > 0 ? std::optional(in_force.schedules[present]) : std::nullopt;
}

}  // namespace gleaner::coordinator
