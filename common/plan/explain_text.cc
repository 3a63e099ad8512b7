#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/text_table.h"
#include "common/base/units.h"
#include "common/plan/explain.h"
#include "common/plan/plan.h"

namespace gleaner::plan {
namespace {

std::string percent(double part) { return absl::StrFormat("%.2f %%", part * 100); }

std::string head_line(const Explanation& e) {
  return absl::StrCat(counted(e.workers, "worker"), ", ", counted(e.machines.size() - e.workers, "summer"), ": ",
                      format_bytes(static_cast<double>(e.stream_bytes)), " a step in ", counted(e.tensors, "tensor"),
                      ", ", counted(e.partitions, "partition"), "\n\n");
}

// Bounds that differ by this factor make another strategy worth a look.
constexpr double kNotableFactor = 1.03;

std::string strategy_lines(const Explanation& e) {
  if (e.all_strategies_seconds == 0) return "";
  std::string text = absl::StrFormat("Strategies  none takes less than %s, by %s\n",
                                     format_seconds(e.all_strategies_seconds), e.all_strategies_limits);
  if (e.bound_seconds > e.all_strategies_seconds * kNotableFactor) {
    text += "            Another strategy than summers may be faster: they are compared below\n";
  }
  return text;
}

std::string step_lines(const Explanation& e) {
  if (e.limit == Limit::kNothingMoves) return "Step        0 s: nothing has to move\n";
  std::string text = absl::StrFormat("Step        %s, %.4f of the bound of %s%s; %s binds\n", format_seconds(e.seconds),
                                     e.seconds / e.bound_seconds, e.all_strategies_seconds > 0 ? "summers, " : "",
                                     format_seconds(e.bound_seconds),
                                     e.binding_link.empty() ? e.machines[e.binding].name : e.binding_link);
  if (e.without_uplinks_seconds > 0 && e.bound_seconds > e.without_uplinks_seconds * (1 + 1e-9)) {
    absl::StrAppendFormat(&text, "Uplinks     make the bound %.2f times as long; without them it is %s\n",
                          e.bound_seconds / e.without_uplinks_seconds, format_seconds(e.without_uplinks_seconds));
  }
  if (e.machines.size() > e.workers) {
    absl::StrAppendFormat(&text, "Without     CPU summers the bound is %s, %.2f times as long\n",
                          format_seconds(e.all_reduce_seconds), e.all_reduce_seconds / e.bound_seconds);
  }
  return text + strategy_lines(e);
}

std::string copy_lines(const Explanation& e) { return e.copies.has_value() ? to_text(*e.copies) : ""; }

std::string limit_lines(const Explanation& e) {
  if (e.limit == Limit::kNothingMoves) return "";
  std::string text;
  const bool copies_bind = e.copies.has_value() && e.copies->binds();
  const MachineLoad& slowest = e.machines[e.slowest_worker];
  if (!e.binding_link.empty()) {
    absl::StrAppend(&text, "Limit       ", e.binding_link, "\n");
  } else if (e.limit == Limit::kSlowestWorker) {
    absl::StrAppendFormat(&text, "Limit       %s at %s: its own gradient fills its link%s\n", slowest.name,
                          format_bits_per_second(slowest.bits_per_second),
                          copies_bind ? "" : "; only a faster link helps");
  } else {
    text += "Limit       all links together: each is busy from the first byte to the last\n";
  }
  if (copies_bind) return text;  // the lines about copies say that neither links nor summers help
  if (e.one_more.bits_per_second == 0) return text + "One more    summer has no host left in this network\n";
  const double saved = 1 - e.one_more.bound_seconds / e.bound_seconds;
  absl::StrAppendFormat(&text, "One more    summer of %s: ", format_bits_per_second(e.one_more.bits_per_second));
  if (saved > 1e-9) {
    absl::StrAppendFormat(&text, "bound %s, %s less\n", format_seconds(e.one_more.bound_seconds), percent(saved));
  } else {
    text += "no gain\n";
  }
  return text;
}

// The transport between two members is chosen when they connect, so a plan can't name it.
constexpr char kTransportLine[] =
    "Transports  a worker's own summer in its process; others by the best that both have: shm on\n"
    "            one machine, rdma, tcp\n";

std::string partition_lines(const Explanation& e) {
  std::string text;
  if (e.push_ratio != 1) {
    absl::StrAppendFormat(&text, "Pushes      %.2f times the bytes of the results: workers %s\n", e.push_ratio,
                          e.push_ratio > 1 ? "of several ranks push sums of fp16\n            and bf16 in fp32"
                                           : "push signs, whose sums have more bits");
  }
  if (e.partitions > 0) {
    absl::StrAppendFormat(&text, "Partitions  %d of %s to %s\n", e.partitions, format_bytes(e.partition_sizes.smallest),
                          format_bytes(e.partition_sizes.largest));
  }
  const PartitionLimits& limits = e.partition_sizes.limits;
  absl::StrAppendFormat(&text,
                        "By default  at most %s: the power of two below\n"
                        "            1.4 ms of the slowest worker's link, 22.4 ms / n above 16 workers, 8 KiB (%s),\n"
                        "            and the size that makes the step shortest: with larger ones a step waits longer\n"
                        "            for its first and last sums, smaller ones cost headers and work (%s),\n"
                        "            but not below 100 us of that link or 64 KiB, whichever is less, nor 10 us of it\n"
                        "            or 4 KiB (%s), nor above 4 MiB\n",
                        format_bytes(static_cast<double>(e.partition_sizes.by_default)), format_bytes(limits.by_link),
                        format_bytes(limits.by_stream), format_bytes(limits.by_overhead));
  const double link = e.machines[e.slowest_worker].bits_per_second / 8;
  absl::StrAppendFormat(&text,
                        "Window      %s on the way (%s of the slowest worker's link): 2n of the largest partition, or\n"
                        "            10 ms of the link or 64 KiB where that is more; in a job also the bytes that the\n"
                        "            link carries in a round trip to the farthest summer\n",
                        format_bytes(static_cast<double>(e.window_bytes)),
                        format_seconds(static_cast<double>(e.window_bytes) / link));
  return text;
}

// Machines with the same role and the same bandwidth share a line if they are neighbours in the plan.
bool same_kind(const Explanation& e, size_t a, size_t b) {
  return (a < e.workers) == (b < e.workers) && e.machines[a].bits_per_second == e.machines[b].bits_per_second;
}

}  // namespace

std::string to_text(const Explanation& explanation) {
  std::vector<std::vector<std::string>> rows = {{"machine", "bandwidth", "owns", "share", "moves each way", "takes"}};
  for (const MachineLoad& machine : explanation.machines) {
    rows.push_back({machine.name, format_bits_per_second(machine.bits_per_second),
                    format_bytes(static_cast<double>(machine.owned_bytes)), percent(machine.share),
                    format_bytes(machine.traffic_bytes), format_seconds(machine.seconds)});
  }
  return absl::StrCat(head_line(explanation), align(rows, "lr"), "\n", step_lines(explanation), copy_lines(explanation),
                      limit_lines(explanation), partition_lines(explanation), kTransportLine);
}

std::string to_table(const Explanation& explanation) {
  std::vector<std::vector<std::string>> rows = {
      {"machines", "bandwidth", "each owns", "share", "moves each way", "takes"}};
  const auto& machines = explanation.machines;
  for (size_t begin = 0, end = 0; begin < machines.size(); begin = end) {
    double owned = 0, traffic = 0, seconds = 0;
    for (end = begin; end < machines.size() && same_kind(explanation, begin, end); ++end) {
      owned = std::max(owned, static_cast<double>(machines[end].owned_bytes));
      traffic = std::max(traffic, machines[end].traffic_bytes);
      seconds = std::max(seconds, machines[end].seconds);
    }
    const std::string name =
        end == begin + 1 ? machines[begin].name : absl::StrCat(machines[begin].name, " .. ", machines[end - 1].name);
    const auto stream = static_cast<double>(std::max<uint64_t>(explanation.stream_bytes, 1));
    rows.push_back({name, format_bits_per_second(machines[begin].bits_per_second), format_bytes(owned),
                    percent(owned / stream), format_bytes(traffic), format_seconds(seconds)});
  }
  return absl::StrCat(head_line(explanation), align(rows, "lr"), "\n", step_lines(explanation),
                      copy_lines(explanation));
}

}  // namespace gleaner::plan
