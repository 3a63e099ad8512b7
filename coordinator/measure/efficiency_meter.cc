#include "coordinator/measure/efficiency_meter.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/median.h"
#include "common/base/text_table.h"
#include "common/strategy/stream_bound.h"
#include "coordinator/measure/rank_waits.h"

namespace gleaner::coordinator {
namespace {

constexpr absl::Duration kSampleEvery = absl::Seconds(5);
constexpr absl::Duration kSettleWithin = absl::Seconds(5);  // without a common step, ends of steps are estimated
constexpr double kRounding = 1e-9;
constexpr double kLeastWait = 1e-6;  // seconds; less is due to rounding

bool is_slower(const Figures& one, const Figures& other) {
  if ((one.steps == 0) != (other.steps == 0)) return other.steps == 0;
  return one.step_communication_seconds + one.step_wait_seconds >
         other.step_communication_seconds + other.step_wait_seconds;
}

EfficiencyMeter::Bound make_bound(const plan::Plan& plan, const strategy::JobNetwork* network,
                                  std::span<const uint32_t> summers_at = {}) {
  if (!plan.bandwidths_known()) return {.is_known = false};
  // Without a model of a schedule, the bound is unknown.
  const absl::StatusOr<strategy::StreamBound> bound = strategy::stream_bound(plan, network, summers_at);
  if (!bound.ok()) return {.is_known = false};
  return {.with_summers = bound->seconds_per_byte, .without_summers = bound->seconds_per_byte_without_summers};
}

void add(RankTotals& totals, const Measured& before, const Measured& after, const EfficiencyMeter::Bound& bound) {
  // The counters of a rank that was started again begin at zero.
  if (after.steps < before.steps || after.bytes < before.bytes) return;
  const auto more = static_cast<double>(after.bytes - before.bytes);
  totals.steps += static_cast<double>(after.steps - before.steps);
  totals.bytes += more;
  totals.step_bytes += static_cast<double>(after.step_bytes) - static_cast<double>(before.step_bytes);
  totals.saved_bytes += static_cast<double>(after.saved_bytes) - static_cast<double>(before.saved_bytes);
  totals.seconds += after.communication_seconds - before.communication_seconds;
  totals.open_bytes = static_cast<double>(after.open_bytes);
  if (!bound.is_known) totals.bytes_of_unknown_bound += more;
  totals.bound_seconds += more * bound.with_summers;
  totals.bound_seconds_without_summers += more * bound.without_summers;
}

// Returns the number of the last step that a report counts.
uint64_t last_step(const Report& report, const RankTotals& totals) {
  uint64_t last = 0;
  for (const Measured& measured : report.measured) last = std::max(last, measured.last_step);
  return last > 0 ? last : static_cast<uint64_t>(totals.steps);
}

}  // namespace

absl::string_view to_string(Basis basis) {
  switch (basis) {
    case Basis::kNothingMeasured:
      return "nothing_measured";
    case Basis::kBandwidth:
      return "bandwidth";
    case Basis::kLatency:
      return "latency";
    case Basis::kUnknownBandwidth:
      return "unknown_bandwidth";
    case Basis::kBandwidthTooLow:
      return "bandwidth_too_low";
    case Basis::kNothingMoves:
      return "nothing_moves";
  }
  return "nothing_measured";
}

std::string efficiency_text(Basis basis, double efficiency) {
  switch (basis) {
    case Basis::kNothingMeasured:
      return "";
    case Basis::kBandwidth:
      return absl::StrFormat("%.1f %%", 100 * efficiency);
    case Basis::kLatency:
      return "latency-bound";
    case Basis::kUnknownBandwidth:
    case Basis::kBandwidthTooLow:
      return "unknown";
    case Basis::kNothingMoves:
      return "nothing moves";
  }
  return "";
}

EfficiencyMeter::Bound EfficiencyMeter::bound_of(const plan::Plan& plan) const {
  const auto epoch = epochs_.find(plan.epoch);
  return epoch == epochs_.end() ? make_bound(plan, network_) : epoch->second.bound;
}

void EfficiencyMeter::on_plan(const plan::Plan& plan, std::span<const uint32_t> summers_at) {
  // A worker that joins counts its steps from its own start.
  if (!epochs_.empty() && epochs_.rbegin()->second.figures.workers != plan.workers) are_aligned_ = false;
  Epoch& epoch = epochs_[plan.epoch];
  epoch.figures.epoch = plan.epoch;
  epoch.figures.workers = plan.workers;
  epoch.figures.summers = plan.summers();
  epoch.bound = make_bound(plan, network_, summers_at);
  are_synchronous_ = std::ranges::none_of(
      plan.tensors, [](const plan::Tensor& tensor) { return tensor.accumulates || !tensor.group.empty(); });
  while (epochs_.size() > kEpochsKept) epochs_.erase(epochs_.begin());
}

void EfficiencyMeter::on_report(uint32_t rank, const Report& report, absl::Duration now) {
  Rank& kept = ranks_[rank];
  if (report.steps < kept.latest.steps) are_aligned_ = false;
  kept.latest = report;
  RankTotals totals = kept.totals;
  for (const Measured& measured : report.measured) {
    const auto epoch = epochs_.find(measured.epoch);
    if (epoch == epochs_.end()) continue;  // an epoch of an earlier coordinator
    add(totals, kept.counted[measured.epoch].measured, measured, epoch->second.bound);
  }
  forget(kept, report);
  for (const Measured& measured : report.measured) kept.counted[measured.epoch].measured = measured;
  if (totals == kept.totals) return;
  kept.totals = totals;
  settle(rank, last_step(report, totals), now);
}

// A rank that ends before the others reports no further steps. The steps of the others then settle without waits.
void EfficiencyMeter::settle(uint32_t rank, uint64_t last_step, absl::Duration now) {
  if (!are_synchronous_ || !are_aligned_) return settle_all(now);
  if (!unsettled_since_.has_value()) unsettled_since_ = now;
  if (common_.add(rank, last_step, ranks_[rank].totals)) {
    add_waits(last_step);
    unsettled_since_.reset();
    for (uint32_t each = 0; each < ranks(); ++each) {
      settle_until(ranks_[each], common_.last(each), now);
      if (ranks_[each].totals.steps > ranks_[each].settled.totals.steps) unsettled_since_ = now;
    }
  } else if (now - *unsettled_since_ >= kSettleWithin) {
    if (const std::optional<uint64_t> reached = common_.reached()) add_waits(*reached);
    settle_all(now);
  }
}

void EfficiencyMeter::settle_all(absl::Duration now) {
  for (Rank& rank : ranks_) settle_until(rank, rank.totals, now);
  unsettled_since_.reset();
}

void EfficiencyMeter::settle_until(Rank& rank, const RankTotals& totals, absl::Duration now) {
  if (totals.steps > rank.settled.totals.steps) {
    if (rank.samples.empty() || rank.settled.at - rank.samples.back().at >= kSampleEvery) {
      rank.samples.push_back(rank.settled);
    }
    while (rank.samples.size() > 1 && now - rank.samples[1].at >= kWindow) rank.samples.pop_front();
    rank.settled = {now, totals};
  }
  rank.settled.totals.waiting_seconds = rank.totals.waiting_seconds;
}

void EfficiencyMeter::add_waits(uint64_t last_step) {
  const std::vector<RankSteps> steps = common_.advance(last_step);
  if (steps.empty()) return;
  const RankWaits waits = waits_of(steps);
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    ranks_[rank].totals.waiting_seconds += waits.seconds[rank];
    if (!ranks_[rank].counted.empty()) ranks_[rank].counted.rbegin()->second.waiting_seconds += waits.seconds[rank];
  }
  ranks_[waits.latest].waited_for_seconds += *std::ranges::max_element(waits.seconds);
}

std::vector<WaitedFor> EfficiencyMeter::waited_for(size_t most) const {
  std::vector<WaitedFor> waited;
  for (uint32_t rank = 0; rank < ranks(); ++rank) {
    if (ranks_[rank].waited_for_seconds > kLeastWait) waited.push_back({rank, ranks_[rank].waited_for_seconds});
  }
  std::ranges::stable_sort(waited, std::ranges::greater(), &WaitedFor::seconds);
  if (waited.size() > most) waited.resize(most);
  return waited;
}

double EfficiencyMeter::round_trip_seconds() const {
  double longest = 0;
  for (const auto& rank : ranks_) longest = std::max(longest, rank.latest.round_trip_seconds);
  return longest;
}

double EfficiencyMeter::overhead_seconds() const {
  std::vector<double> known;
  for (const auto& rank : ranks_) {
    if (rank.latest.overhead_seconds > 0) known.push_back(rank.latest.overhead_seconds);
  }
  return upper_median(std::move(known));
}

Figures EfficiencyMeter::of(const Counted& counted, const Bound& bound, double round_trip_seconds) {
  RankTotals totals;
  add(totals, {}, counted.measured, bound);
  totals.waiting_seconds = counted.waiting_seconds;
  return between({}, totals, round_trip_seconds);
}

// Keeps the figures of epochs that the rank does not report about any more.
void EfficiencyMeter::forget(Rank& rank, const Report& report) {
  const uint32_t oldest = report.measured.empty() ? 0 : report.measured.front().epoch;
  while (!rank.counted.empty() && rank.counted.begin()->first < oldest) {
    const auto& [number, counted] = *rank.counted.begin();
    if (const auto epoch = epochs_.find(number); epoch != epochs_.end()) {
      const Figures figures = of(counted, epoch->second.bound, report.round_trip_seconds);
      if (is_slower(figures, epoch->second.figures.figures)) epoch->second.figures.figures = figures;
    }
    rank.counted.erase(rank.counted.begin());
  }
}

Figures EfficiencyMeter::between(const RankTotals& before, const RankTotals& after, double round_trip_seconds) {
  Figures figures;
  const double steps = after.steps - before.steps;
  figures.steps = static_cast<uint64_t>(std::llround(steps));
  const double seconds = after.seconds - before.seconds;
  const double all = after.bytes - before.bytes;
  if (figures.steps == 0 || !(seconds > 0) || !(all > 0)) return {};
  // Leaves out bytes that were in flight at the beginning, since they belong to steps that began earlier.
  const double part = std::max(0.0, 1 - before.open_bytes / all);
  const double step_bytes = after.step_bytes - before.step_bytes;
  figures.bytes_per_step = (step_bytes > 0 ? step_bytes : part * all) / steps;
  figures.dense_bytes_per_step = figures.bytes_per_step + (after.saved_bytes - before.saved_bytes) / steps;
  // Waits are added when all ranks have reported, so they may belong to another epoch or window than the time.
  const double bound_seconds = part * (after.bound_seconds - before.bound_seconds);
  const double most = std::max(0.0, seconds - bound_seconds);
  const double waiting = std::clamp(after.waiting_seconds - before.waiting_seconds, 0.0, most);
  figures.step_wait_seconds = waiting / steps;
  figures.step_communication_seconds = (seconds - waiting) / steps;
  if (!(figures.step_communication_seconds > 0)) return {};
  figures.goodput_bytes_per_second = figures.bytes_per_step / figures.step_communication_seconds;
  if (after.bytes_of_unknown_bound > before.bytes_of_unknown_bound) {
    figures.basis = Basis::kUnknownBandwidth;
    return figures;
  }
  figures.bound_seconds = bound_seconds / steps;
  figures.bound_seconds_without_summers =
      part * (after.bound_seconds_without_summers - before.bound_seconds_without_summers) / steps;
  const double round_trip = std::max(round_trip_seconds, absl::ToDoubleSeconds(kLeastRoundTrip));
  if (!(figures.bound_seconds > 0)) {
    figures.basis = Basis::kNothingMoves;
  } else if (figures.bound_seconds > figures.step_communication_seconds * (1 + kRounding)) {
    figures.basis = Basis::kBandwidthTooLow;
  } else if (figures.bound_seconds < kFewRoundTrips * round_trip) {
    figures.basis = Basis::kLatency;
  } else {
    figures.basis = Basis::kBandwidth;
    figures.efficiency = std::min(1.0, figures.bound_seconds / figures.step_communication_seconds);
  }
  return figures;
}

Figures EfficiencyMeter::window(absl::Duration now) const {
  Figures slowest;
  for (const Rank& rank : ranks_) {
    if (rank.samples.empty()) continue;  // no steps, or steps whose waits are not known
    auto from = rank.samples.rbegin();
    while (std::next(from) != rank.samples.rend() && now - from->at < kWindow) ++from;
    Figures figures = between(from->totals, rank.settled.totals, rank.latest.round_trip_seconds);
    if (from->totals.steps == 0 && from != rank.samples.rbegin()) --from;  // the time of the first step is unknown
    const double seconds = absl::ToDoubleSeconds(rank.settled.at - from->at);
    if (from->totals.steps > 0 && seconds > 0) {
      figures.steps_per_second = (rank.settled.totals.steps - from->totals.steps) / seconds;
    }
    if (is_slower(figures, slowest)) slowest = figures;
  }
  return slowest;
}

Figures EfficiencyMeter::whole() const {
  Figures slowest;
  for (const Rank& rank : ranks_) {
    const Figures figures = between({}, rank.totals, rank.latest.round_trip_seconds);
    if (is_slower(figures, slowest)) slowest = figures;
  }
  return slowest;
}

std::vector<EpochFigures> EfficiencyMeter::epochs() const {
  std::vector<EpochFigures> epochs;
  for (const auto& [number, epoch] : epochs_) {
    EpochFigures figures = epoch.figures;
    for (const Rank& rank : ranks_) {
      const auto counted = rank.counted.find(number);
      if (counted == rank.counted.end()) continue;
      const Figures own = of(counted->second, epoch.bound, rank.latest.round_trip_seconds);
      if (is_slower(own, figures.figures)) figures.figures = own;
    }
    if (figures.figures.steps > 0) epochs.push_back(figures);
  }
  return epochs;
}

std::string EfficiencyMeter::describe_steps(uint32_t rank) const {
  uint64_t most = 0;
  for (uint32_t other = 0; other < ranks(); ++other) {
    if (other != rank) most = std::max(most, latest(other).steps);
  }
  const uint64_t own = latest(rank).steps;
  if (most + own == 0) return "";
  // The text says "last report" because reports of living ranks are up to a second old.
  return absl::StrCat("; its last report was of ", counted(own, "step"),
                      most > own ? absl::StrCat(", the others' of up to ", most) : "");
}

}  // namespace gleaner::coordinator
