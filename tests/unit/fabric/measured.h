// Profiles of nodes whose agents measure a network of racks, for tests.
#pragma once

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "common/fabric/latency_pairs.h"
#include "common/ranks/random.h"

namespace gleaner::fabric {

inline const absl::Time kNow = absl::UnixEpoch() + absl::Hours(1000);

// Nodes "n00" to "nXX", of which node i is in rack i / rack_size. Round trips are 40 us within and 80 us across racks,
// off by 5 %.
class MeasuredRacks {
 public:
  MeasuredRacks(uint32_t nodes, uint32_t rack_size) {
    ranks::Random random(1);
    for (uint32_t i = 0; i < nodes; ++i) {
      names.push_back((i < 10 ? "n0" : "n") + std::to_string(i));
      auto profile = std::make_shared<api::NodeProfile>();
      profile->meta.name = names.back();
      profile->status.bits_per_second = 10e9;
      all_.push_back(profile);
      profiles[names.back()] = profile;
    }
    for (uint32_t from = 0; from < nodes; ++from) {
      for (uint32_t to = 0; to < nodes; ++to) {
        const double usual = from / rack_size == to / rack_size ? 40 : 80;
        if (from != to) set(from, to, usual * std::exp(0.05 * random.normal()));
      }
    }
  }

  // Sets what the agent of node `from` has measured.
  void set(uint32_t from, uint32_t to, double microseconds) {
    entry(from, to).round_trip = absl::Microseconds(microseconds);
  }
  void forget(uint32_t from, uint32_t to) {
    std::erase_if(all_[from]->status.peers, [&](const api::PeerLatency& peer) { return peer.node == names[to]; });
  }
  api::PeerLatency& entry(uint32_t from, uint32_t to) {
    for (api::PeerLatency& peer : all_[from]->status.peers) {
      if (peer.node == names[to]) return peer;
    }
    return all_[from]->status.peers.emplace_back(api::PeerLatency{names[to], {}, 0, kNow - absl::Minutes(1)});
  }
  void set_bandwidth(uint32_t from, uint32_t to, double bits_per_second) {
    all_[from]->status.peer_bandwidths.push_back({names[to], bits_per_second, kNow - absl::Minutes(1)});
  }

  std::vector<std::string> names;
  Profiles profiles;

 private:
  std::vector<std::shared_ptr<api::NodeProfile>> all_;
};

}  // namespace gleaner::fabric
