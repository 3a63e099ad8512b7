#include "common/netsim/fair_rates.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace gleaner::netsim {
namespace {

// Relative difference below which rates are the same. It is above the rounding errors of the sums over a channel.
constexpr double kSame = 1e-11;

}  // namespace

FairRates::FairRates(const std::vector<double>& capacities) {
  channels_.reserve(capacities.size());
  for (const double capacity : capacities) add_channel(capacity);
}

uint32_t FairRates::add_channel(double capacity) {
  channels_.emplace_back().capacity = capacity;
  return static_cast<uint32_t>(channels_.size()) - 1;
}

uint32_t FairRates::add(std::span<const uint32_t> path, double weight) {
  if (free_.empty()) {
    free_.push_back(static_cast<uint32_t>(flows_.size()));
    flows_.emplace_back();
  }
  const uint32_t index = free_.back();
  free_.pop_back();
  Flow& flow = flows_[index];
  flow.weight = weight;
  for (const uint32_t channel : path) {
    std::vector<Entry>& entries = channels_[channel].entries;
    entries.push_back({index, static_cast<uint32_t>(flow.path.size())});
    flow.path.push_back({channel, static_cast<uint32_t>(entries.size()) - 1});
    touch(channel);
  }
  return index;
}

void FairRates::remove(uint32_t index) {
  Flow& flow = flows_[index];
  for (const Hop& hop : flow.path) {
    std::vector<Entry>& entries = channels_[hop.channel].entries;
    const Entry last = entries.back();
    entries[hop.position] = last;
    flows_[last.flow].path[last.hop].position = hop.position;
    entries.pop_back();
    touch(hop.channel);
  }
  flow.path.clear();
  flow.rate = 0;
  flow.bottleneck = kNone;
  free_.push_back(index);
}

void FairRates::touch(uint32_t channel) {
  if (channels_[channel].touched) return;
  channels_[channel].touched = true;
  touched_.push_back(channel);
}

const std::vector<uint32_t>& FairRates::update() {
  changed_.clear();
  choose_changed();
  if (!chosen_.empty()) {
    do {
      fill();
    } while (choose_displaced());
  }
  for (const uint32_t index : chosen_) {
    Flow& flow = flows_[index];
    flow.chosen = false;
    flow.bottleneck = flow.next_bottleneck;
    if (std::abs(flow.next_rate - flow.rate) <= kSame * flow.rate) continue;
    flow.rate = flow.next_rate;
    changed_.push_back(index);
  }
  for (const uint32_t channel : listed_) channels_[channel].listed = false;
  chosen_.clear();
  listed_.clear();
  return changed_;
}

void FairRates::choose(uint32_t index) {
  Flow& flow = flows_[index];
  if (flow.chosen) return;
  flow.chosen = true;
  chosen_.push_back(index);
  for (const Hop& hop : flow.path) {
    if (channels_[hop.channel].listed) continue;
    channels_[hop.channel].listed = true;
    listed_.push_back(hop.channel);
  }
}

void FairRates::choose_changed() {
  for (const uint32_t channel : touched_) {
    channels_[channel].touched = false;
    for (const Entry& entry : channels_[channel].entries) {
      const uint32_t bottleneck = flows_[entry.flow].bottleneck;
      if (bottleneck == channel || bottleneck == kNone) choose(entry.flow);
    }
  }
  touched_.clear();
}

void FairRates::fill() {
  computed_ += chosen_.size();
  for (const uint32_t flow : chosen_) flows_[flow].next_bottleneck = kNone;
  offers_.clear();
  for (const uint32_t index : listed_) {
    Channel& channel = channels_[index];
    channel.left = channel.capacity;
    channel.open = 0;
    channel.open_weight = 0;
    for (const Entry& entry : channel.entries) {
      const Flow& flow = flows_[entry.flow];
      if (flow.chosen) {
        ++channel.open;
        channel.open_weight += flow.weight;
      } else {
        channel.left -= flow.rate;
      }
    }
    channel.left = std::max(channel.left, 0.0);
    if (channel.open > 0) offers_.push_back({channel.left / channel.open_weight, index});
  }
  std::ranges::make_heap(offers_, std::greater<>());
  while (!offers_.empty()) {
    std::ranges::pop_heap(offers_, std::greater<>());
    const Offer offer = offers_.back();
    const Channel& channel = channels_[offer.channel];
    const double level = channel.open == 0 ? 0 : channel.left / channel.open_weight;
    if (channel.open > 0 && level > offer.level) {
      offers_.back().level = level;
      std::ranges::push_heap(offers_, std::greater<>());
      continue;
    }
    offers_.pop_back();
    if (channel.open > 0) fix(offer.channel, level);
  }
}

void FairRates::fix(uint32_t channel, double level) {
  for (const Entry& entry : channels_[channel].entries) {
    Flow& flow = flows_[entry.flow];
    if (!flow.chosen || flow.next_bottleneck != kNone) continue;
    flow.next_rate = level * flow.weight;
    flow.next_bottleneck = channel;
    for (const Hop& hop : flow.path) {
      Channel& crossed = channels_[hop.channel];
      crossed.left = std::max(crossed.left - flow.next_rate, 0.0);
      crossed.open_weight -= flow.weight;
      --crossed.open;
    }
  }
}

bool FairRates::choose_displaced() {
  displaced_.clear();
  for (const uint32_t channel : listed_) {
    if (channels_[channel].entries.size() > 1) collect_displaced(channel);
  }
  const size_t before = chosen_.size();
  for (const uint32_t flow : displaced_) choose(flow);
  return chosen_.size() != before;
}

void FairRates::collect_displaced(uint32_t index) {
  const Channel& channel = channels_[index];
  double sum = 0, highest = 0;                             // of rates and levels
  double level = std::numeric_limits<double>::infinity();  // of chosen flows whose bottleneck is this channel
  bool all_chosen = true;
  for (const Entry& entry : channel.entries) {
    const Flow& flow = flows_[entry.flow];
    const double rate = flow.chosen ? flow.next_rate : flow.rate;
    sum += rate;
    highest = std::max(highest, rate / flow.weight);
    all_chosen = all_chosen && flow.chosen;
    if (flow.chosen && flow.next_bottleneck == index) level = std::min(level, rate / flow.weight);
  }
  if (all_chosen) return;
  const bool full = sum >= channel.capacity * (1 - kSame);
  for (const Entry& entry : channel.entries) {
    const Flow& flow = flows_[entry.flow];
    if (flow.chosen) continue;
    const bool takes_too_much = flow.rate / flow.weight > level * (1 + kSame);
    const bool can_get_more = flow.bottleneck == index && (!full || flow.rate / flow.weight < highest * (1 - kSame));
    if (takes_too_much || can_get_more) displaced_.push_back(entry.flow);
  }
}

}  // namespace gleaner::netsim
