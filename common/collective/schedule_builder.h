// ScheduleBuilder collects the transfers of a schedule, step by step. Within a step each rank sends before it receives,
// in the order of the calls, so that an exchange between two ranks runs in both directions at the same time.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/collective/schedule.h"

namespace gleaner::collective {

class ScheduleBuilder {
 public:
  // Records only the operations of the rank `only`, if it is given.
  ScheduleBuilder(std::string algorithm, const Collective& collective, uint32_t chunks, OnlyRank only = {});

  // Adds a message to the current step. An empty slice adds nothing.
  void transfer(uint32_t from, uint32_t to, Slice slice, Take take);
  // Adds a message for each run of consecutive chunks. `chunks` ascend.
  void transfer_chunks(uint32_t from, uint32_t to, const std::vector<uint32_t>& chunks, Take take);
  // Ends the current step, which must have a transfer.
  void end_step();
  void add_stage(Groups groups) { schedule_.stages.push_back(std::move(groups)); }
  // Returns the schedule. The current step must be empty.
  Schedule take() { return std::move(schedule_); }

 private:
  bool records(uint32_t rank) const { return only_.value_or(rank) == rank; }

  const OnlyRank only_;
  Schedule schedule_;
  std::vector<std::vector<Op>> receives_;  // of the current step, by rank
  std::vector<uint32_t> receivers_;        // ranks with an element in receives_
};

}  // namespace gleaner::collective
