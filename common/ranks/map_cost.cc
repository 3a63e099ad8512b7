#include "common/ranks/map_cost.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace gleaner::ranks {
namespace {

using topology::Topology;

uint64_t chunks_of(const collective::StepPattern& pattern) {
  uint64_t sum = 0;
  for (const collective::Transfer& transfer : pattern.transfers) sum += transfer.chunks;
  return sum * pattern.steps.size();
}

// Returns the most chunks that one rank sends or receives in a step.
uint64_t most_chunks(const std::vector<collective::Transfer>& transfers, uint32_t ranks) {
  std::vector<uint64_t> sent(ranks, 0), received(ranks, 0);
  for (const collective::Transfer& transfer : transfers) {
    sent[transfer.from] += transfer.chunks;
    received[transfer.to] += transfer.chunks;
  }
  return std::max(*std::max_element(sent.begin(), sent.end()), *std::max_element(received.begin(), received.end()));
}

}  // namespace

MapCost::MapCost(std::vector<collective::StepPattern> patterns, uint32_t ranks, uint32_t chunks,
                 const Topology& topology, const PathTable& paths, uint64_t bytes)
    : topology_(topology), paths_(paths), patterns_of_(ranks), load_(topology.channel_count(), 0) {
  for (uint32_t channel = 0; channel < topology.channel_count(); ++channel) {
    seconds_per_chunk_.push_back(8.0 * static_cast<double>(bytes) / chunks / topology.bits_per_second(channel));
  }
  std::stable_sort(patterns.begin(), patterns.end(),
                   [](const auto& a, const auto& b) { return chunks_of(a) > chunks_of(b); });
  for (collective::StepPattern& pattern : patterns) {
    const auto index = static_cast<uint32_t>(patterns_.size());
    const auto add = [&](uint32_t rank) {
      std::vector<uint32_t>& list = patterns_of_[rank];
      if (list.empty() || list.back() != index) list.push_back(index);
    };
    for (const collective::Transfer& transfer : pattern.transfers) {
      add(transfer.from);
      add(transfer.to);
    }
    patterns_.push_back({std::move(pattern.transfers), static_cast<double>(pattern.steps.size()), {}, {}});
  }
  is_affected_.assign(patterns_.size(), false);
  double chunks_sent = 0, messages = 0;
  for (const Pattern& pattern : patterns_) {
    for (const collective::Transfer& transfer : pattern.transfers) chunks_sent += pattern.steps * transfer.chunks;
    messages += pattern.steps * static_cast<double>(pattern.transfers.size());
  }
  mean_chunks_ = chunks_sent / std::max(messages, 1.0);
}

double MapCost::message_seconds(uint32_t from, uint32_t to) const {
  double slowest = 0;
  for (const uint32_t channel : paths_.channels(from, to)) slowest = std::max(slowest, seconds_per_chunk_[channel]);
  return paths_.latency_seconds(from, to) + mean_chunks_ * slowest;
}

MapCost::Value MapCost::measure(const Pattern& pattern, const RankMap& host_of) {
  for (const collective::Transfer& transfer : pattern.transfers) {
    for (const uint32_t channel : paths_.channels(host_of[transfer.from], host_of[transfer.to])) {
      load_[channel] += transfer.chunks;
    }
  }
  double worst = 0, sum = 0;
  for (const collective::Transfer& transfer : pattern.transfers) {
    const uint32_t from = host_of[transfer.from], to = host_of[transfer.to];
    double seconds = 0;
    for (const uint32_t channel : paths_.channels(from, to)) {
      seconds = std::max(seconds, load_[channel] * seconds_per_chunk_[channel]);
    }
    seconds += paths_.latency_seconds(from, to);
    worst = std::max(worst, seconds);
    sum += seconds;
  }
  for (const collective::Transfer& transfer : pattern.transfers) {
    for (const uint32_t channel : paths_.channels(host_of[transfer.from], host_of[transfer.to])) load_[channel] = 0;
  }
  return {worst, worst + kMeanPart * sum / static_cast<double>(std::max<size_t>(pattern.transfers.size(), 1))};
}

MapCost::Value MapCost::reset(const RankMap& host_of) {
  total_ = {};
  affected_.clear();
  for (Pattern& pattern : patterns_) {
    pattern.value = measure(pattern, host_of);
    total_.seconds += pattern.steps * pattern.value.seconds;
    total_.energy += pattern.steps * pattern.value.energy;
  }
  return total_;
}

void MapCost::find_affected(std::span<const uint32_t> changed) {
  affected_.clear();
  for (const uint32_t rank : changed) {
    for (const uint32_t index : patterns_of_[rank]) {
      if (is_affected_[index]) continue;
      is_affected_[index] = true;
      affected_.push_back(index);
    }
    if (affected_.size() == patterns_.size()) break;
  }
  for (const uint32_t index : affected_) is_affected_[index] = false;
  std::sort(affected_.begin(), affected_.end());
}

std::optional<MapCost::Value> MapCost::evaluate(const RankMap& host_of, std::span<const uint32_t> changed,
                                                double limit) {
  find_affected(changed);
  Value total = total_;
  for (const uint32_t index : affected_) {
    total.seconds -= patterns_[index].steps * patterns_[index].value.seconds;
    total.energy -= patterns_[index].steps * patterns_[index].value.energy;
  }
  for (const uint32_t index : affected_) {
    Pattern& pattern = patterns_[index];
    pattern.candidate = measure(pattern, host_of);
    total.seconds += pattern.steps * pattern.candidate.seconds;
    total.energy += pattern.steps * pattern.candidate.energy;
    if (total.energy > limit) return std::nullopt;
  }
  return total;
}

void MapCost::take() {
  for (const uint32_t index : affected_) patterns_[index].value = patterns_[index].candidate;
  // The sum begins anew, so that rounding errors do not add up.
  total_ = {};
  for (const Pattern& pattern : patterns_) {
    total_.seconds += pattern.steps * pattern.value.seconds;
    total_.energy += pattern.steps * pattern.value.energy;
  }
}

double MapCost::bound_seconds() const {
  const uint32_t hosts = topology_.host_count();
  double latency = std::numeric_limits<double>::infinity();
  for (uint32_t from = 0; from < hosts; ++from) {
    for (uint32_t to = 0; to < hosts; ++to) {
      if (from != to) latency = std::min(latency, paths_.latency_seconds(from, to));
    }
  }
  // A host with several links may send to several peers at once.
  bool single = true;
  double per_chunk = std::numeric_limits<double>::infinity();
  for (uint32_t host = 0; host < hosts; ++host) {
    single = single && topology_.neighbours(host).size() == 1;
    for (const Topology::Neighbour& link : topology_.neighbours(host)) {
      per_chunk = std::min({per_chunk, seconds_per_chunk_[link.channel], seconds_per_chunk_[link.channel ^ 1]});
    }
  }
  double bound = 0;
  for (const Pattern& pattern : patterns_) {
    if (pattern.transfers.empty()) continue;
    uint64_t chunks = 0;
    for (const collective::Transfer& transfer : pattern.transfers) chunks = std::max<uint64_t>(chunks, transfer.chunks);
    if (single) chunks = most_chunks(pattern.transfers, static_cast<uint32_t>(patterns_of_.size()));
    bound += pattern.steps * (latency + static_cast<double>(chunks) * per_chunk);
  }
  return bound;
}

double MapCost::visits() const {
  const uint32_t hosts = topology_.host_count();
  size_t channels = 0, transfers = 0;
  for (uint32_t from = 0; from < hosts; ++from) {
    for (uint32_t to = 0; to < hosts; ++to) channels += paths_.channels(from, to).size();
  }
  for (const Pattern& pattern : patterns_) transfers += pattern.transfers.size();
  const double pairs = std::max(1.0, static_cast<double>(hosts) * (hosts - 1.0));
  return static_cast<double>(transfers) * (static_cast<double>(channels) / pairs);
}

}  // namespace gleaner::ranks
