// ScheduleReport sums up, for one schedule, the slices of the push_pulls that the schedule has summed. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/timeline/steps.h"
#include "cli/timeline/timeline.h"

namespace gleaner::cli {

struct ScheduleReport {
  struct Worker {
    uint64_t sent = 0;      // slices
    uint64_t received = 0;  // slices, added or copied
    uint64_t sent_bytes = 0;
  };
  // The median times of a slice, in nanoseconds; 0: no slice has both events.
  struct Medians {
    Time queue = 0;  // from the receive before it in the sender's program until it leaves
    Time wire = 0;
    Time sum = 0;  // until it is added or copied
  };
  uint32_t schedule = 0;    // index in Plan::schedules
  uint64_t partitions = 0;  // of all push_pulls
  std::vector<Worker> workers;
  Medians medians;
};

// Returns a report for each schedule that sums tensors in one of `steps`, by index of the schedule.
std::vector<ScheduleReport> report_schedules(const Timeline& timeline, const std::vector<const Step*>& steps);

nlohmann::ordered_json to_json(const std::vector<ScheduleReport>& reports, const plan::Plan& plan);
// Returns a line for each report.
std::string to_text(const std::vector<ScheduleReport>& reports, const plan::Plan& plan);

}  // namespace gleaner::cli
