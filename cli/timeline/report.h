// TraceReport shows the stages in which the time of a job's steps was spent according to a trace: as values, as JSON,
// and as a table for people (report_text.cc). Pure.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/timeline/critical_path.h"
#include "cli/timeline/schedule_report.h"
#include "cli/timeline/steps.h"
#include "cli/timeline/timeline.h"

namespace gleaner::cli {

struct TraceReport {
  struct Row {
    Step step;
    StepPath path;
  };
  std::vector<Row> rows;                  // complete steps
  std::vector<ScheduleReport> schedules;  // about `rows`
  size_t left_out = 0;                    // number of incomplete steps, without the last step of the trace
  std::vector<std::string> remarks;       // limits of this trace, for people
  std::vector<std::string> missing;       // names of ranks and summers without a recording
  std::vector<double> uncertainties;      // of each member's clock, in seconds; below zero: unknown
  uint64_t events = 0;                    // number of recorded events
};

// Makes a report of the first `most_steps` complete steps; 0: of all.
TraceReport make_report(const Timeline& timeline, size_t most_steps);

nlohmann::ordered_json to_json(const TraceReport& report, const Timeline& timeline);
// Returns text that ends with a newline.
std::string to_text(const TraceReport& report, const Timeline& timeline);

}  // namespace gleaner::cli
