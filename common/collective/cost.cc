#include "common/collective/cost.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/collective/messages.h"

namespace gleaner::collective {
namespace {

// Returns the transfers of messages of one step.
std::vector<Transfer> transfers_of(std::vector<const Message*> messages) {
  std::sort(messages.begin(), messages.end(),
            [](const Message* a, const Message* b) { return a->from != b->from ? a->from < b->from : a->to < b->to; });
  std::vector<Transfer> transfers;
  for (const Message* message : messages) {
    if (transfers.empty() || transfers.back().from != message->from || transfers.back().to != message->to) {
      transfers.push_back({message->from, message->to, 0, 0});
    }
    transfers.back().chunks += message->slice.count;
    ++transfers.back().messages;
  }
  return transfers;
}

uint64_t hash_of(const std::vector<Transfer>& transfers) {
  uint64_t hash = transfers.size();
  for (const Transfer& transfer : transfers) {
    for (const uint32_t value : {transfer.from, transfer.to, transfer.chunks, transfer.messages}) {
      hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
      hash ^= hash >> 29;
    }
  }
  return hash;
}

absl::Status check_map(uint32_t ranks, uint32_t hosts, const std::vector<uint32_t>& host_of) {
  if (host_of.size() != ranks) {
    return absl::InvalidArgumentError(absl::StrCat("the rank map has ", host_of.size(), " ranks, the schedule ", ranks,
                                                   "; give a host to each rank"));
  }
  constexpr uint32_t kNone = ~0u;
  std::vector<uint32_t> rank_of(hosts, kNone);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    const uint32_t host = host_of[rank];
    if (host >= hosts) {
      return absl::InvalidArgumentError(
          absl::StrCat("the rank map puts rank ", rank, " on host ", host, ", but the topology has ", hosts, " hosts"));
    }
    if (rank_of[host] != kNone) {
      return absl::InvalidArgumentError(
          absl::StrCat("the rank map puts the ranks ", rank_of[host], " and ", rank, " on host ", host));
    }
    rank_of[host] = rank;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<StepPattern>> step_patterns(const Schedule& schedule) {
  GLN_ASSIGN_OR_RETURN(const Messages messages, Messages::make(schedule));
  std::vector<std::vector<const Message*>> by_step(schedule.steps);
  for (const Message& message : messages.all()) by_step[message.step].push_back(&message);
  std::vector<StepPattern> patterns;
  absl::flat_hash_map<uint64_t, std::vector<size_t>> with_hash;
  for (uint32_t step = 0; step < schedule.steps; ++step) {
    std::vector<Transfer> transfers = transfers_of(std::move(by_step[step]));
    std::vector<size_t>& candidates = with_hash[hash_of(transfers)];
    const auto equal = std::find_if(candidates.begin(), candidates.end(),
                                    [&](size_t pattern) { return patterns[pattern].transfers == transfers; });
    if (equal != candidates.end()) {
      patterns[*equal].steps.push_back(step);
      continue;
    }
    candidates.push_back(patterns.size());
    patterns.push_back({std::move(transfers), {step}});
  }
  return patterns;
}

absl::StatusOr<MappedCost> MappedCost::make(const Schedule& schedule, const topology::Topology& topology,
                                            const topology::Paths& paths, std::vector<uint32_t> host_of,
                                            uint64_t bytes) {
  GLN_RETURN_IF_ERROR(check_map(schedule.ranks, topology.host_count(), host_of));
  GLN_ASSIGN_OR_RETURN(std::vector<StepPattern> patterns, step_patterns(schedule));
  MappedCost mapped(topology, paths, std::move(host_of));
  mapped.steps_ = schedule.steps;
  mapped.load_.resize(topology.channel_count());
  mapped.flows_.resize(topology.channel_count());
  const double chunk_bits = 8.0 * static_cast<double>(bytes) / schedule.chunks;
  for (uint32_t channel = 0; channel < topology.channel_count(); ++channel) {
    mapped.seconds_per_chunk_.push_back(chunk_bits / topology.bits_per_second(channel));
  }
  for (StepPattern& steps : patterns) {
    Pattern& pattern = mapped.patterns_.emplace_back();
    pattern.steps = std::move(steps);
    pattern.paths.resize(pattern.steps.transfers.size());
    for (size_t i = 0; i < pattern.paths.size(); ++i) mapped.find_path(pattern, i);
    mapped.measure(pattern);
  }
  mapped.add_up();
  return mapped;
}

void MappedCost::find_path(Pattern& pattern, size_t transfer) {
  const uint32_t from = host_of_[pattern.steps.transfers[transfer].from];
  const uint32_t to = host_of_[pattern.steps.transfers[transfer].to];
  pattern.paths[transfer].clear();
  paths_->append_path(from, to, flow_between(from, to), pattern.paths[transfer]);
}

void MappedCost::measure(Pattern& pattern) {
  const std::vector<Transfer>& transfers = pattern.steps.transfers;
  for (size_t i = 0; i < transfers.size(); ++i) {
    for (const uint32_t channel : pattern.paths[i]) {
      load_[channel] += transfers[i].chunks;
      flows_[channel] += transfers[i].messages;
    }
  }
  pattern.cost = StepCost();
  double most = -1;  // seconds of the most loaded channel
  for (const std::vector<uint32_t>& path : pattern.paths) {
    double latency = 0, slowest = 0;
    for (const uint32_t channel : path) {
      const double seconds = static_cast<double>(load_[channel]) * seconds_per_chunk_[channel];
      latency += topology_->latency_seconds(channel);
      slowest = std::max(slowest, seconds);
      if (seconds <= most) continue;
      most = seconds;
      pattern.cost.worst_channel = channel;
    }
    pattern.cost.seconds = std::max(pattern.cost.seconds, latency + slowest);
  }
  if (most >= 0) pattern.cost.flows = flows_[pattern.cost.worst_channel];
  for (const std::vector<uint32_t>& path : pattern.paths) {
    for (const uint32_t channel : path) load_[channel] = flows_[channel] = 0;
  }
}

void MappedCost::add_up() {
  seconds_ = 0;
  for (const Pattern& pattern : patterns_)
    seconds_ += static_cast<double>(pattern.steps.steps.size()) * pattern.cost.seconds;
}

void MappedCost::update(uint32_t a, uint32_t b) {
  for (Pattern& pattern : patterns_) {
    bool changed = false;
    for (size_t i = 0; i < pattern.paths.size(); ++i) {
      const Transfer& transfer = pattern.steps.transfers[i];
      if (transfer.from != a && transfer.from != b && transfer.to != a && transfer.to != b) continue;
      find_path(pattern, i);
      changed = true;
    }
    if (changed) measure(pattern);
  }
  add_up();
}

void MappedCost::swap_hosts(uint32_t a, uint32_t b) {
  std::swap(host_of_[a], host_of_[b]);
  update(a, b);
}

void MappedCost::move_to(uint32_t rank, uint32_t host) {
  host_of_[rank] = host;
  update(rank, rank);
}

Cost MappedCost::cost() const {
  Cost cost;
  cost.seconds = seconds_;
  cost.steps.resize(steps_);
  for (const Pattern& pattern : patterns_) {
    for (const uint32_t step : pattern.steps.steps) cost.steps[step] = pattern.cost;
  }
  return cost;
}

absl::StatusOr<Cost> cost(const Schedule& schedule, const topology::Topology& topology, const topology::Paths& paths,
                          const std::vector<uint32_t>& host_of, uint64_t bytes) {
  GLN_ASSIGN_OR_RETURN(const MappedCost mapped, MappedCost::make(schedule, topology, paths, host_of, bytes));
  return mapped.cost();
}

}  // namespace gleaner::collective
