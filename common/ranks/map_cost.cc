#include "common/ranks/map_cost.h"

#include <algorithm>
#include <limits>

#include "common/collective/cost.h"
#include "common/ranks/rank_map.h"

namespace gleaner::ranks {
namespace {

using collective::LongestPath;
using topology::Topology;

double mean_chunks(std::span<const collective::StepPattern> patterns) {
  double chunks = 0, messages = 0;
  for (const collective::StepPattern& pattern : patterns) {
    const auto steps = static_cast<double>(pattern.steps.size());
    for (const collective::Transfer& transfer : pattern.transfers) chunks += steps * transfer.chunks;
    messages += steps * static_cast<double>(pattern.transfers.size());
  }
  return chunks / std::max(messages, 1.0);
}

std::vector<double> seconds_per_chunk(const Topology& topology, double bytes_per_chunk) {
  std::vector<double> seconds;
  for (uint32_t channel = 0; channel < topology.channel_count(); ++channel) {
    seconds.push_back(8 * bytes_per_chunk / topology.bits_per_second(channel));
  }
  return seconds;
}

}  // namespace

MapCost::MapCost(std::span<const collective::StepPattern> patterns, uint32_t ranks, uint32_t chunks,
                 const Topology& topology, const PathTable& paths, uint64_t bytes)
    : topology_(topology),
      paths_(paths),
      seconds_per_chunk_(seconds_per_chunk(topology, static_cast<double>(bytes) / chunks)),
      overhead_of_host_(collective::overheads_of(topology, identity(topology.host_count()))),
      overheads_(overhead_of_host_.empty() ? 0 : ranks),
      longest_path_(patterns, ranks, topology.channel_count()),
      bound_(patterns, ranks, 2 * ranks),
      mean_chunks_(mean_chunks(patterns)) {}

double MapCost::message_seconds(uint32_t from, uint32_t to) const {
  double slowest = 0;
  for (const uint32_t channel : paths_.channels(from, to)) slowest = std::max(slowest, seconds_per_chunk_[channel]);
  const double processors = topology_.hosts()[from].overhead_seconds + topology_.hosts()[to].overhead_seconds;
  return processors + paths_.latency_seconds(from, to) + mean_chunks_ * slowest;
}

MapCost::Value MapCost::evaluate(const RankMap& host_of) {
  const auto path_of = [&](const LongestPath::Connection& connection) {
    const uint32_t from = host_of[connection.from], to = host_of[connection.to];
    return LongestPath::Path{paths_.channels(from, to), paths_.latency_seconds(from, to)};
  };
  for (size_t rank = 0; rank < overheads_.size(); ++rank) overheads_[rank] = overhead_of_host_[host_of[rank]];
  const LongestPath::Value value = longest_path_.evaluate(path_of, seconds_per_chunk_, overheads_);
  return {value.seconds, value.seconds + kMeanPart * value.mean_seconds};
}

double MapCost::bound_seconds() {
  const uint32_t hosts = topology_.host_count();
  double latency = std::numeric_limits<double>::infinity();
  for (uint32_t from = 0; from < hosts; ++from) {
    for (uint32_t to = 0; to < hosts; ++to) {
      if (from != to) latency = std::min(latency, paths_.latency_seconds(from, to));
    }
  }
  // A host with several links may send to several peers at once.
  size_t most_links = 1;
  double per_chunk = std::numeric_limits<double>::infinity();
  for (uint32_t host = 0; host < hosts; ++host) {
    most_links = std::max(most_links, topology_.neighbours(host).size());
    for (const Topology::Neighbour& link : topology_.neighbours(host)) {
      per_chunk = std::min({per_chunk, seconds_per_chunk_[link.channel], seconds_per_chunk_[link.channel ^ 1]});
    }
  }
  const std::vector<double> seconds(size_t{2} * hosts, per_chunk / static_cast<double>(most_links));
  std::vector<double> overheads;
  if (!overhead_of_host_.empty()) overheads.assign(overheads_.size(), *std::ranges::min_element(overhead_of_host_));
  uint32_t channels[2];
  const auto path_of = [&](const LongestPath::Connection& connection) {
    channels[0] = 2 * connection.from;
    channels[1] = 2 * connection.to + 1;
    return LongestPath::Path{channels, latency};
  };
  return bound_.evaluate(path_of, seconds, overheads).seconds;
}

double MapCost::visits() const {
  const uint32_t hosts = topology_.host_count();
  size_t channels = 0;
  for (uint32_t from = 0; from < hosts; ++from) {
    for (uint32_t to = 0; to < hosts; ++to) channels += paths_.channels(from, to).size();
  }
  const double pairs = std::max(1.0, static_cast<double>(hosts) * (hosts - 1.0));
  return static_cast<double>(longest_path_.message_count()) +
         static_cast<double>(longest_path_.connections().size() * channels) / pairs;
}

}  // namespace gleaner::ranks
