#include "common/netsim/channel_loads.h"

#include <utility>

namespace gleaner::netsim {

void ChannelLoads::add(uint32_t step, std::span<const uint32_t> channels, double bytes) {
  std::unique_ptr<Open>& open = open_[step];
  if (open == nullptr) {
    if (spare_.empty()) {
      spare_.push_back(std::make_unique<Open>());
      spare_.back()->loads.resize(topology_.channel_count());
    }
    open = std::move(spare_.back());
    spare_.pop_back();
  }
  for (const uint32_t channel : channels) {
    Load& load = open->loads[channel];
    if (load.flows++ == 0) open->used.push_back(channel);
    load.seconds += bytes * 8 / topology_.bits_per_second(channel);
  }
  if (--left_[step] == 0) close(step);
}

void ChannelLoads::close(uint32_t step) {
  const auto found = open_.find(step);
  Open& open = *found->second;
  double seconds = -1;
  for (const uint32_t channel : open.used) {
    Load& load = open.loads[channel];
    const bool is_worse = load.seconds > seconds || (load.seconds == seconds && channel < worst_[step].channel);
    if (is_worse) {
      seconds = load.seconds;
      worst_[step] = {channel, load.flows};
    }
    load = {};
  }
  open.used.clear();
  spare_.push_back(std::move(found->second));
  open_.erase(found);
}

}  // namespace gleaner::netsim
