// ChannelLoads adds up how long the messages of each step keep each channel busy, and so finds the worst link of the
// step: the channel that needs the most time for them. A step's sums are held from its first message to its last. Pure.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/topology/topology.h"

namespace gleaner::netsim {

// The channel that needs the most time for the messages of a step.
struct WorstLink {
  uint32_t channel = 0;
  uint32_t flows = 0;  // messages over this channel in the step; 0: no message of the step used any channel
};

class ChannelLoads {
 public:
  // `messages[step]` is the number of messages that each step will have. `topology` must outlive the object.
  ChannelLoads(const topology::Topology& topology, std::vector<uint64_t> messages)
      : topology_(topology), left_(std::move(messages)), worst_(left_.size()) {}

  // Adds a message of a step.
  void add(uint32_t step, std::span<const uint32_t> channels, double bytes);
  // Returns the worst link of each step that has had all of its messages.
  const std::vector<WorstLink>& worst() const { return worst_; }

 private:
  struct Load {
    double seconds = 0;
    uint32_t flows = 0;
  };
  struct Open {
    std::vector<Load> loads;     // by channel
    std::vector<uint32_t> used;  // channels with a load
  };

  void close(uint32_t step);

  const topology::Topology& topology_;
  std::vector<uint64_t> left_;  // messages to come, by step
  std::vector<WorstLink> worst_;
  absl::flat_hash_map<uint32_t, std::unique_ptr<Open>> open_;  // by step
  std::vector<std::unique_ptr<Open>> spare_;
};

}  // namespace gleaner::netsim
