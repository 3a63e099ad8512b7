#include "cli/timeline/schedule_report.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "cli/timeline/receives.h"
#include "common/base/median.h"
#include "common/base/text_table.h"
#include "common/base/units.h"

namespace gleaner::cli {
namespace {

struct Collected {
  ScheduleReport report;
  std::vector<Time> queue, wire, sum;
};

// Adds the interval, unless one of its ends is unknown.
void add(std::vector<Time>& intervals, Time begin, Time end) {
  if (begin != kNever && end != kNever) intervals.push_back(std::max<Time>(0, end - begin));
}

void collect(const PartitionTimes& partition, Collected& collected) {
  ++collected.report.partitions;
  std::vector<Receives> receives;
  for (uint32_t w = 0; w < partition.runs.size(); ++w) receives.emplace_back(partition, w);
  for (const auto& [key, slice] : partition.slices) {
    if (slice.sent == kNever) continue;
    ++collected.report.workers[key.from].sent;
    collected.report.workers[key.from].sent_bytes += slice.bytes;
    add(collected.queue, receives[key.from].ended(receives[key.from].before(key.schedule_step)), slice.sent);
    add(collected.wire, slice.sent, slice.arrived);
  }
  for (uint32_t w = 0; w < receives.size(); ++w) {
    collected.report.workers[w].received += receives[w].all().size();
    for (const Receive& receive : receives[w].all()) add(collected.sum, receive.begun, receive.times.received);
  }
}

}  // namespace

std::vector<ScheduleReport> report_schedules(const Timeline& timeline, const std::vector<const Step*>& steps) {
  std::map<uint32_t, Collected> by_schedule;
  for (const Step* const step : steps) {
    for (const TensorStep& tensor_step : step->tensor_steps) {
      const TensorStepTimes& times = timeline.times_of(tensor_step);
      if (!times.schedule.has_value()) continue;
      Collected& collected = by_schedule[*times.schedule];
      collected.report.workers.resize(timeline.plan().workers);
      for (const PartitionTimes& partition : times.partitions) collect(partition, collected);
    }
  }
  std::vector<ScheduleReport> reports;
  for (auto& [schedule, collected] : by_schedule) {
    collected.report.schedule = schedule;
    collected.report.medians = {upper_median(std::move(collected.queue)), upper_median(std::move(collected.wire)),
                                upper_median(std::move(collected.sum))};
    reports.push_back(std::move(collected.report));
  }
  return reports;
}

nlohmann::ordered_json to_json(const std::vector<ScheduleReport>& reports, const plan::Plan& plan) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const ScheduleReport& report : reports) {
    nlohmann::ordered_json one = {{"schedule", report.schedule},
                                  {"algorithm", plan.schedules[report.schedule].algorithm},
                                  {"partitions", report.partitions}};
    one["median_seconds"] = {{"queue", seconds(report.medians.queue)},
                             {"wire", seconds(report.medians.wire)},
                             {"sum", seconds(report.medians.sum)}};
    one["workers"] = nlohmann::ordered_json::array();
    for (uint32_t w = 0; w < report.workers.size(); ++w) {
      const ScheduleReport::Worker& worker = report.workers[w];
      one["workers"].push_back({{"worker", w},
                                {"slices_sent", worker.sent},
                                {"slices_received", worker.received},
                                {"sent_bytes", worker.sent_bytes}});
    }
    json.push_back(std::move(one));
  }
  return json;
}

std::string to_text(const std::vector<ScheduleReport>& reports, const plan::Plan& plan) {
  std::string text;
  for (const ScheduleReport& report : reports) {
    uint64_t slices = 0, bytes = 0;
    for (const ScheduleReport::Worker& worker : report.workers) {
      slices += worker.sent;
      bytes += worker.sent_bytes;
    }
    absl::StrAppend(&text, "Schedule ", report.schedule, " (", plan.schedules[report.schedule].algorithm,
                    "): ", counted(report.partitions, "partition"), ", ", counted(slices, "slice"), ", ",
                    format_bytes(bytes), "; median slice: queue ", format_seconds(seconds(report.medians.queue)),
                    ", wire ", format_seconds(seconds(report.medians.wire)), ", sum ",
                    format_seconds(seconds(report.medians.sum)), "\n");
  }
  return text;
}

}  // namespace gleaner::cli
