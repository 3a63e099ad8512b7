#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/timeline/report.h"
#include "common/base/text_table.h"
#include "common/base/units.h"

namespace gleaner::cli {
namespace {

std::string milliseconds(double nanoseconds) { return absl::StrFormat("%.3f", nanoseconds / 1e6); }

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// Returns the stages that have a column: all, except those of GPUs and kUnknown if no step has time in them.
std::vector<Stage> columns(const TraceReport& report) {
  std::vector<Stage> stages;
  for (size_t i = 0; i < kStages; ++i) {
    const auto stage = static_cast<Stage>(i);
    const bool used = std::any_of(report.rows.begin(), report.rows.end(),
                                  [stage](const TraceReport::Row& row) { return row.path[stage] > 0; });
    if (used || (stage != Stage::kUnknown && !is_of_gpu(stage))) stages.push_back(stage);
  }
  return stages;
}

std::string line(absl::string_view head, const std::vector<std::string>& cells, absl::string_view tail) {
  std::string text = absl::StrFormat("%-8s", head);
  for (const std::string& cell : cells) absl::StrAppendFormat(&text, " %10s", cell);
  if (!tail.empty()) absl::StrAppend(&text, "  ", tail);
  return absl::StrCat(text, "\n");
}

std::string steps_table(const TraceReport& report) {
  const std::vector<Stage> stages = columns(report);
  std::vector<std::string> head = {"ms"};
  for (const Stage stage : stages) head.emplace_back(name_of(stage));
  std::string text = line("step", head, "slowest");
  std::vector<double> lengths;
  std::map<Stage, std::vector<double>> spent;
  for (const TraceReport::Row& row : report.rows) {
    const auto length = static_cast<double>(row.step.end - row.step.begin);
    lengths.push_back(length);
    std::vector<std::string> cells = {milliseconds(length)};
    for (const Stage stage : stages) {
      spent[stage].push_back(static_cast<double>(row.path[stage]));
      cells.push_back(milliseconds(spent[stage].back()));
    }
    std::string slowest = "-";
    if (const auto& who = row.path.slowest; who.has_value()) {
      slowest = absl::StrCat("worker ", who->worker, ", ", milliseconds(static_cast<double>(who->waited)), " ms");
    }
    absl::StrAppend(&text, line(absl::StrCat(row.step.number), cells, slowest));
  }
  double all = 0;
  for (const double length : lengths) all += length;
  std::vector<std::string> middle = {milliseconds(median(lengths))}, parts = {"100.0 %"};
  for (const Stage stage : stages) {
    double sum = 0;
    for (const double time : spent[stage]) sum += time;
    middle.push_back(milliseconds(median(spent[stage])));
    parts.push_back(absl::StrFormat("%.1f %%", all == 0 ? 0 : 100 * sum / all));
  }
  return absl::StrCat(text, line("median", middle, ""), line("of all", parts, ""));
}

// Returns a line for each worker that others waited for, the longest wait first.
std::string waits(const TraceReport& report) {
  std::map<uint32_t, double> waited;
  double all = 0;
  for (const TraceReport::Row& row : report.rows) {
    all += static_cast<double>(row.step.end - row.step.begin);
    for (const Segment& segment : row.path.segments) {
      if (segment.stage == Stage::kWait) waited[segment.member] += static_cast<double>(segment.end - segment.begin);
    }
  }
  std::vector<std::pair<double, uint32_t>> order;
  order.reserve(waited.size());
  for (const auto& [worker, time] : waited) order.emplace_back(time, worker);
  std::sort(order.rbegin(), order.rend());
  std::string text;
  for (const auto& [time, worker] : order) {
    absl::StrAppendFormat(&text, "Waited for worker %d: %s ms, %.1f %% of all\n", worker, milliseconds(time),
                          100 * time / all);
  }
  return text;
}

}  // namespace

std::string to_text(const TraceReport& report, const Timeline& timeline) {
  const plan::Plan& plan = timeline.plan();
  std::string text = absl::StrCat(counted(plan.workers, "worker"), ", ", counted(plan.summers(), "summer"), ": ",
                                  counted(report.events, "event"), ", ", counted(report.rows.size(), "step"));
  double worst = -1;
  for (const double uncertainty : report.uncertainties) worst = std::max(worst, uncertainty);
  if (worst > 0) absl::StrAppend(&text, "; clocks are set to within ", format_seconds(worst));
  absl::StrAppend(&text, "\n");
  for (const std::string& remark : report.remarks) absl::StrAppend(&text, "- ", remark, "\n");
  if (report.rows.empty()) {
    return absl::StrCat(text, "No step is whole in this trace: trace for longer, while the job is training\n");
  }
  return absl::StrCat(text, "\n", steps_table(report), "\n", waits(report), to_text(report.schedules, plan));
}

}  // namespace gleaner::cli
