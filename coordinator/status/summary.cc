#include "coordinator/status/summary.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/units.h"
#include "common/plan/partitioner.h"

namespace gleaner::coordinator {
namespace {

constexpr size_t kMostWaitedFor = 4;

void add_figures(const Figures& figures, nlohmann::ordered_json& json) {
  json["steps"] = figures.steps;
  json["bytes_per_step"] = figures.bytes_per_step;
  json["dense_bytes_per_step"] = figures.dense_bytes_per_step;
  json["step_communication_seconds"] = figures.step_communication_seconds;
  json["step_wait_seconds"] = figures.step_wait_seconds;
  json["goodput_bytes_per_second"] = figures.goodput_bytes_per_second;
  json["bound_seconds"] = figures.bound_seconds;
  json["efficiency"] = figures.efficiency;
  json["efficiency_basis"] = std::string(to_string(figures.basis));
  json["bound_seconds_without_summers"] = figures.bound_seconds_without_summers;
}

nlohmann::ordered_json json_of(const Figures& figures) {
  nlohmann::ordered_json json;
  add_figures(figures, json);
  return json;
}

nlohmann::ordered_json json_of(const StrategyChange& change) {
  return {{"epoch", change.epoch},
          {"seconds", change.seconds},
          {"tensors", change.tensors},
          {"bytes", change.bytes},
          {"from", change.from},
          {"to", change.to},
          {"step_seconds_before", change.seconds_before},
          {"step_seconds_after", change.seconds_after},
          {"why", change.why}};
}

nlohmann::ordered_json json_of(const CandidateTimes& size) {
  nlohmann::ordered_json json = {{"bytes", size.bytes}, {"tensors", size.tensors}, {"strategy", size.strategy}};
  json["candidates"] = nlohmann::ordered_json::array();
  for (const CandidateTimes::Candidate& each : size.candidates) {
    json["candidates"].push_back({{"strategy", each.strategy},
                                  {"modelled_seconds", each.seconds},
                                  {"factor", each.factor},
                                  {"measured", each.is_measured},
                                  {"seconds", each.corrected_seconds},
                                  {"bits", plan::name_of(each.bits)}});
  }
  return json;
}

nlohmann::ordered_json json_of(const std::optional<OtherBits>& other) {
  if (!other.has_value()) return nullptr;
  return {{"bits", plan::name_of(other->bits)},
          {"seconds", other->seconds},
          {"instead_of_seconds", other->instead_of_seconds},
          {"strategy", other->strategy}};
}

nlohmann::ordered_json json_of(const std::optional<control::Packs>& packs) {
  if (!packs.has_value()) return nullptr;
  nlohmann::ordered_json bytes = packs->fusion_bytes;
  if (packs->fusion_bytes == 0) bytes = nullptr;
  if (std::isinf(packs->fusion_bytes)) bytes = "inf";
  return {
      {"fusion_bytes", bytes}, {"seconds", packs->seconds}, {"seconds_without_packs", packs->seconds_without_packs}};
}

template <typename Value>
nlohmann::ordered_json json_of(const std::vector<Value>& values) {
  auto json = nlohmann::ordered_json::array();
  for (const Value& each : values) json.push_back(json_of(each));
  return json;
}

}  // namespace

Summary summarize(const plan::Plan& plan, const EfficiencyMeter& efficiency, absl::Duration now) {
  Summary summary;
  summary.strategy = plan::strategy_of(plan);
  summary.bits.in_force = plan.bits;
  summary.epoch = plan.epoch;
  summary.tensors = plan.tensors.size();
  summary.partitions = plan.partitions.size();
  summary.bandwidths_known = plan.bandwidths_known();
  summary.push_ratio = plan::fleet_of(plan).push_ratio;
  if (efficiency.ranks() > 0) summary.packs = efficiency.latest(0).packs;
  Figures& whole = summary.whole;
  for (uint32_t rank = 0; rank < efficiency.ranks(); ++rank) {
    const Report& report = efficiency.latest(rank);
    if (report.steps == 0) continue;
    const auto steps = static_cast<double>(report.steps);
    whole.steps = std::max(whole.steps, report.steps);
    const double mean = static_cast<double>(report.bytes) / steps;
    const double bytes = report.step_bytes > 0 ? static_cast<double>(report.step_bytes) : mean;
    whole.bytes_per_step = std::max(whole.bytes_per_step, bytes);
    whole.dense_bytes_per_step = std::max(whole.dense_bytes_per_step, bytes + static_cast<double>(report.saved_bytes));
    whole.step_communication_seconds = std::max(whole.step_communication_seconds, report.communication_seconds / steps);
  }
  if (whole.steps == 0 || plan.members.empty()) return summary;
  summary.window = efficiency.window(now);
  summary.epochs = efficiency.epochs();
  const double bytes = summary.recent().bytes_per_step;
  if (const EfficiencyMeter::Bound bound = efficiency.bound_of(plan); bound.is_known) {
    summary.plan_bound.seconds = bytes * bound.with_summers;
    summary.plan_bound.seconds_without_summers = bytes * bound.without_summers;
  }
  if (const Figures compared = efficiency.whole(); compared.steps > 0) {
    const uint64_t steps = whole.steps;
    whole = compared;
    whole.steps = steps;
    whole.waited_for = efficiency.waited_for(kMostWaitedFor);
  } else {
    whole.bound_seconds = summary.plan_bound.seconds;
    whole.bound_seconds_without_summers = summary.plan_bound.seconds_without_summers;
  }
  if (whole.step_communication_seconds > 0) {
    whole.goodput_bytes_per_second = whole.bytes_per_step / whole.step_communication_seconds;
  }
  return summary;
}

std::string describe(const control::Packs& packs) {
  const std::string without = format_seconds(packs.seconds_without_packs);
  if (packs.fusion_bytes == 0) {
    return absl::StrCat("none; gradients are predicted to be averages ", without, " after the first of a step");
  }
  const std::string sizes = std::isinf(packs.fusion_bytes)
                                ? "all gradients in one"
                                : absl::StrCat("gradients of at most ", format_bytes(packs.fusion_bytes));
  return absl::StrCat(sizes, "; they are predicted to be averages ", format_seconds(packs.seconds),
                      " after the first of a step, without packs ", without);
}

std::string to_json(const Summary& summary) {
  nlohmann::ordered_json json;
  json["workers"] = summary.workers;
  json["summers"] = summary.summers;
  json["local_ranks"] = summary.local_ranks;
  json["strategy"] = summary.strategy;
  json["bits"] = plan::name_of(summary.bits.in_force);
  json["other_bits"] = json_of(summary.bits.other);
  json["rank_maps"] = nlohmann::ordered_json::array();
  for (const auto& [spec, times] : summary.mapped) {
    json["rank_maps"].push_back({{"strategy", collective::name_of(spec)},
                                 {"ranks", spec.rank_of},
                                 {"global_chunks", spec.masters.global},
                                 {"local_chunks", spec.masters.local},
                                 {"identity_seconds", times.identity_seconds},
                                 {"seconds", times.seconds}});
  }
  json["strategy_changes"] = json_of(summary.strategy_changes);
  json["candidates"] = json_of(summary.candidates);
  json["epoch"] = summary.epoch;
  json["tensors"] = summary.tensors;
  json["partitions"] = summary.partitions;
  json["packs"] = json_of(summary.packs);
  add_figures(summary.whole, json);
  json["waited_for"] = nlohmann::ordered_json::array();
  for (const WaitedFor& each : summary.whole.waited_for) {
    json["waited_for"].push_back({{"rank", each.rank}, {"seconds", each.seconds}});
  }
  json["last_minute"] = json_of(summary.window);
  json["last_minute"]["steps_per_second"] = summary.window.steps_per_second;
  json["epochs"] = nlohmann::ordered_json::array();
  for (const EpochFigures& epoch : summary.epochs) {
    nlohmann::ordered_json entry;
    entry["epoch"] = epoch.epoch;
    entry["workers"] = epoch.workers;
    entry["summers"] = epoch.summers;
    entry.update(json_of(epoch.figures));
    json["epochs"].push_back(std::move(entry));
  }
  json["succeeded"] = summary.succeeded;
  json["error"] = summary.error;
  // Errors may quote bytes that are not UTF-8; those are replaced.
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string to_table(const Summary& summary) {
  const auto row = [](absl::string_view name, const std::string& value) {
    return absl::StrFormat("  %-42s %s\n", name, value);
  };
  const auto counted = [](uint64_t count, absl::string_view what) {
    return absl::StrCat(count, " ", what, count == 1 ? "" : "s");
  };
  std::string members = counted(summary.workers, "worker");
  if (summary.local_ranks > 1) absl::StrAppend(&members, " of ", counted(summary.local_ranks, "local rank"));
  absl::StrAppend(&members, ", ", counted(summary.summers, "summer"));
  std::string text = row("members", members);
  if (summary.strategy != plan::kSummersStrategy) text += row("strategy", summary.strategy);
  std::string bits = plan::name_of(summary.bits.in_force);
  if (summary.bits.other.has_value()) absl::StrAppend(&bits, "; ", describe(*summary.bits.other));
  text += row("bits", bits);
  for (const auto& [spec, times] : summary.mapped) {
    text += row(absl::StrCat("rank map of ", collective::name_of(spec)), strategy::describe(spec, times));
  }
  for (const StrategyChange& change : summary.strategy_changes) {
    text += row(absl::StrCat("strategy changed in epoch ", change.epoch),
                absl::StrCat(change.from, " to ", change.to, ": ", change.why));
  }
  if (summary.packs.has_value()) text += row("packs", describe(*summary.packs));
  text += row("steps", absl::StrCat(summary.whole.steps));
  if (summary.whole.steps == 0) return text;
  text +=
      row("bytes per step", format_bytes_instead_of(summary.whole.bytes_per_step, summary.whole.dense_bytes_per_step));
  text += row("communication per step", format_seconds(summary.whole.step_communication_seconds));
  if (summary.whole.step_wait_seconds > 0) {
    std::string wait = format_seconds(summary.whole.step_wait_seconds);
    if (!summary.whole.waited_for.empty()) {
      const WaitedFor& most = summary.whole.waited_for.front();
      absl::StrAppend(&wait, "; ", format_seconds(most.seconds), " in all for rank ", most.rank);
    }
    text += row("wait for late ranks per step", wait);
  }
  text += row("goodput per worker", absl::StrCat(format_bytes(summary.whole.goodput_bytes_per_second), "/s"));
  if (!summary.bandwidths_known) return text + row("bound", "unknown: say how fast the links are, by --bandwidth");
  text += row("bound", format_seconds(summary.whole.bound_seconds));
  text += row("bound without summers (k = 0)", format_seconds(summary.whole.bound_seconds_without_summers));
  if (summary.whole.basis == Basis::kNothingMeasured) return text;
  if (summary.whole.basis == Basis::kBandwidthTooLow) {
    return text + row("efficiency", "unknown: steps beat the bound, so a link is faster than --bandwidth says");
  }
  return text +
         row("efficiency (bound / communication)", efficiency_text(summary.whole.basis, summary.whole.efficiency));
}

}  // namespace gleaner::coordinator
