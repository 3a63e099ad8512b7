#include "common/collective/schedule_builder.h"

#include <utility>

namespace gleaner::collective {

ScheduleBuilder::ScheduleBuilder(std::string algorithm, const Collective& collective, uint32_t chunks, OnlyRank only)
    : only_(only), schedule_{collective}, receives_(collective.ranks) {
  schedule_.algorithm = std::move(algorithm);
  schedule_.chunks = chunks;
  schedule_.programs.resize(collective.ranks);
}

void ScheduleBuilder::transfer(uint32_t from, uint32_t to, Slice slice, Take take) {
  if (slice.count == 0) return;
  if (records(from)) schedule_.programs[from].push_back({OpKind::kSend, take, to, schedule_.steps, slice});
  if (!records(to)) return;
  if (receives_[to].empty()) receivers_.push_back(to);
  receives_[to].push_back({OpKind::kReceive, take, from, schedule_.steps, slice});
}

void ScheduleBuilder::transfer_chunks(uint32_t from, uint32_t to, const std::vector<uint32_t>& chunks, Take take) {
  Slice run;
  for (const uint32_t chunk : chunks) {
    if (run.count > 0 && run.first + run.count == chunk) {
      ++run.count;
      continue;
    }
    transfer(from, to, run, take);
    run = {chunk, 1};
  }
  transfer(from, to, run, take);
}

void ScheduleBuilder::end_step() {
  for (const uint32_t rank : receivers_) {
    std::vector<Op>& program = schedule_.programs[rank];
    program.insert(program.end(), receives_[rank].begin(), receives_[rank].end());
    receives_[rank].clear();
  }
  receivers_.clear();
  ++schedule_.steps;
}

}  // namespace gleaner::collective
