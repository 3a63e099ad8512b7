// What a trace says of a job's steps: as values, as JSON, and as a table for people (report_text.cc). Pure.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/timeline/critical_path.h"
#include "cli/timeline/steps.h"
#include "cli/timeline/timeline.h"

namespace gleaner::cli {

struct TraceReport {
  struct Row {
    Step step;
    StepPath path;
  };
  std::vector<Row> rows;              // steps that are complete
  size_t left_out = 0;                // steps that are not
  std::vector<std::string> remarks;   // what limits this trace, for people
  std::vector<std::string> missing;   // ranks that gave nothing
  std::vector<double> uncertainties;  // of members' clocks, seconds; below zero: not known
  uint64_t events = 0;
};

// `most_steps`: the first so many; 0: all.
TraceReport make_report(const Timeline& timeline, size_t most_steps);

nlohmann::ordered_json to_json(const TraceReport& report, const Timeline& timeline);
// Ends with a newline.
std::string to_text(const TraceReport& report, const Timeline& timeline);

}  // namespace gleaner::cli
