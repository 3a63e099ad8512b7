#include "comm-lib/collective/program.h"

namespace gleaner::collective {

Program::Program(const Schedule& schedule, std::span<const uint32_t> ranks, uint32_t worker)
    : chunks_(schedule.chunks), source_of_(schedule.ranks, kNone) {
  std::vector<uint32_t> worker_of(schedule.ranks);
  for (uint32_t i = 0; i < schedule.ranks; ++i) worker_of[ranks.empty() ? i : ranks[i]] = i;
  std::vector<uint32_t> last_from;  // by source: index of the last receive so far
  for (const Op& op : schedule.programs[ranks.empty() ? worker : ranks[worker]]) {
    const auto index = static_cast<uint32_t>(operations_.size());
    Operation& operation = operations_.emplace_back();
    operation.kind = op.kind;
    operation.peer = worker_of[op.peer];
    operation.slice = op.slice;
    operation.step = op.step;
    if (op.kind == OpKind::kSend) continue;
    uint32_t& source = source_of_[operation.peer];
    if (source == kNone) {
      source = static_cast<uint32_t>(first_from_.size());
      first_from_.push_back(index);
      last_from.push_back(index);
    } else {
      operations_[last_from[source]].next_from = index;
      last_from[source] = index;
    }
    operation.source = source;
  }
}

}  // namespace gleaner::collective
