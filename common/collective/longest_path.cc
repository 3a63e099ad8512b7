#include "common/collective/longest_path.h"

#include <algorithm>
#include <tuple>

namespace gleaner::collective {

LongestPath::LongestPath(std::span<const StepPattern> patterns, uint32_t ranks, uint32_t channels)
    : channels_(channels), ready_(ranks), processors_(ranks) {
  for (const StepPattern& pattern : patterns) {
    for (const Transfer& transfer : pattern.transfers) connections_.push_back({transfer.from, transfer.to});
  }
  const auto order = [](const Connection& a, const Connection& b) {
    return std::tie(a.from, a.to) < std::tie(b.from, b.to);
  };
  std::ranges::sort(connections_, order);
  connections_.erase(std::unique(connections_.begin(), connections_.end()), connections_.end());
  tracks_.resize(connections_.size());
  size_t most = 0;
  for (const StepPattern& pattern : patterns) {
    const auto index = static_cast<uint32_t>(patterns_.size());
    const auto begin = static_cast<uint32_t>(messages_.size());
    for (const Transfer& transfer : pattern.transfers) {
      const Connection connection{transfer.from, transfer.to};
      const auto at = std::ranges::lower_bound(connections_, connection, order) - connections_.begin();
      messages_.push_back({static_cast<uint32_t>(at), transfer.chunks, transfer.messages, transfer.from, transfer.to});
    }
    patterns_.push_back({begin, static_cast<uint32_t>(messages_.size())});
    most = std::max(most, pattern.transfers.size());
    for (const uint32_t step : pattern.steps) {
      if (step >= pattern_of_step_.size()) pattern_of_step_.resize(step + 1);
      pattern_of_step_[step] = index;
    }
  }
  starts_.resize(most);
}

// Finds the channels that connections share, and the time of a chunk on each path.
void LongestPath::lay(PathOf path_of, std::span<const double> seconds_per_chunk) {
  for (const Connection& connection : connections_) {
    for (const uint32_t channel : path_of(connection).channels) channels_[channel] = {};
  }
  for (const Connection& connection : connections_) {
    for (const uint32_t channel : path_of(connection).channels) ++channels_[channel].users;
  }
  shared_.clear();
  for (size_t i = 0; i < connections_.size(); ++i) {
    const Path path = path_of(connections_[i]);
    Track& track = tracks_[i];
    track = {.latency_seconds = path.latency_seconds, .begin = static_cast<uint32_t>(shared_.size())};
    for (const uint32_t channel : path.channels) {
      track.seconds_per_chunk = std::max(track.seconds_per_chunk, seconds_per_chunk[channel]);
      if (channels_[channel].users > 1) shared_.push_back({channel, seconds_per_chunk[channel]});
    }
    track.end = static_cast<uint32_t>(shared_.size());
  }
}

double LongestPath::sent(uint32_t rank, double overhead, uint32_t count) {
  Processor& processor = processors_[rank];
  return processor.free = std::max(processor.free, ready_[rank]) + count * overhead;
}

void LongestPath::receive(uint32_t rank, double overhead) {
  Processor& processor = processors_[rank];
  if (processor.arrived == 0) return;
  const double in_turn = std::max(processor.free, processor.first) + processor.arrived * overhead;
  ready_[rank] = processor.free = std::max(in_turn, ready_[rank] + overhead);
  processor.arrived = 0;
}

// Carries out a step, and returns the mean time of its messages.
double LongestPath::pass(const Pattern& pattern, std::span<const double> overheads) {
  for (uint32_t i = pattern.begin; i < pattern.end; ++i) {
    const Message& message = messages_[i];
    const Track& track = tracks_[message.connection];
    double ready = ready_[message.from];
    if (!overheads.empty()) ready = sent(message.from, overheads[message.from], message.count);
    const double start = std::max(ready, track.left);
    starts_[i - pattern.begin] = start;
    for (uint32_t at = track.begin; at < track.end; ++at) {
      Channel& channel = channels_[shared_[at].channel];
      const double seconds = message.chunks * shared_[at].seconds_per_chunk;
      channel.start = channel.seconds > 0 ? std::min(channel.start, start) : start;
      channel.seconds += seconds;
    }
  }
  double sum = 0;
  for (uint32_t i = pattern.begin; i < pattern.end; ++i) {
    const Message& message = messages_[i];
    Track& track = tracks_[message.connection];
    const double start = starts_[i - pattern.begin];
    double left = start + message.chunks * track.seconds_per_chunk;
    for (uint32_t at = track.begin; at < track.end; ++at) {
      const Channel& channel = channels_[shared_[at].channel];
      left = std::max(left, std::max(channel.free, channel.start) + channel.seconds);
    }
    track.left = left;
    const double arrival = left + track.latency_seconds;
    ready_[message.to] = std::max(ready_[message.to], arrival);
    sum += arrival - start;
    if (overheads.empty()) continue;
    Processor& receiver = processors_[message.to];
    receiver.first = receiver.arrived == 0 ? arrival : std::min(receiver.first, arrival);
    receiver.arrived += message.count;
  }
  for (uint32_t i = pattern.begin; i < pattern.end && !overheads.empty(); ++i) {
    receive(messages_[i].to, overheads[messages_[i].to]);
  }
  for (uint32_t i = pattern.begin; i < pattern.end && !shared_.empty(); ++i) {
    const Track& track = tracks_[messages_[i].connection];
    for (uint32_t at = track.begin; at < track.end; ++at) {
      Channel& channel = channels_[shared_[at].channel];
      if (!(channel.seconds > 0)) continue;
      channel.free = std::max(channel.free, channel.start) + channel.seconds;
      channel.seconds = 0;
    }
  }
  return sum / std::max(pattern.end - pattern.begin, 1u);
}

LongestPath::Value LongestPath::evaluate(PathOf path_of, std::span<const double> seconds_per_chunk,
                                         std::span<const double> overheads) {
  lay(path_of, seconds_per_chunk);
  std::ranges::fill(ready_, 0);
  std::ranges::fill(processors_, Processor());
  for (size_t rank = 0; rank < overheads.size(); ++rank) ready_[rank] = processors_[rank].free = overheads[rank];
  Value value;
  for (const uint32_t pattern : pattern_of_step_) value.mean_seconds += pass(patterns_[pattern], overheads);
  for (size_t rank = 0; rank < overheads.size(); ++rank) {
    ready_[rank] = std::max(ready_[rank], processors_[rank].free) + overheads[rank];
  }
  if (!ready_.empty()) value.seconds = *std::ranges::max_element(ready_);
  return value;
}

uint64_t LongestPath::message_count() const {
  uint64_t count = 0;
  for (const uint32_t pattern : pattern_of_step_) count += patterns_[pattern].end - patterns_[pattern].begin;
  return count;
}

}  // namespace gleaner::collective
