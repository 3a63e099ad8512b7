#include "cli/timeline/receives.h"

#include <algorithm>

namespace gleaner::cli {

Receives::Receives(const PartitionTimes& partition, uint32_t worker) {
  if (worker < partition.runs.size()) begun_ = partition.runs[worker].begun;
  for (const auto& [key, times] : partition.slices) {
    if (key.to == worker && times.received != kNever) receives_.push_back({key, times, kNever});
  }
  std::ranges::stable_sort(receives_, {}, [](const Receive& receive) { return receive.times.received; });
  for (size_t i = 0; i < receives_.size(); ++i) {
    Receive& receive = receives_[i];
    if (receive.times.arrived != kNever && ended(i) != kNever)
      receive.begun = std::max(receive.times.arrived, ended(i));
  }
}

size_t Receives::before(uint32_t step) const {
  return static_cast<size_t>(
      std::ranges::count_if(receives_, [step](const Receive& receive) { return receive.slice.schedule_step < step; }));
}

}  // namespace gleaner::cli
