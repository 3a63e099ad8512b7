// FairRates gives each flow its max-min fair rate. A flow uses every channel of its path. It has a weight; its *level*
// is its rate divided by its weight. In a max-min fair allocation no flow can get more unless a flow with the same or a
// smaller level gets less; it is unique. Equivalently, each flow has a *bottleneck*: a channel of its path that is
// full, and on which no flow has a higher level (D. Bertsekas, R. Gallager, Data Networks, 2nd edition, §6.5.2). Pure.
//
// Rates are computed by water filling: the channel that offers its flows the lowest level fixes their rates, then the
// next.
// When flows come and go, update() does this only for flows whose rate may differ: first the new flows, and the flows
// whose bottleneck is a channel that changed. All other rates stay. The new rates may take the bottleneck from further
// flows: then update() adds these flows and fills again, until every flow has a bottleneck. All flows that it computes
// are in the connected component of the changed channels. The rates are the same as those of filling the whole network.
//
// Example: flows a, b and c share a channel of 9; a also crosses a channel of 2. Then a has 2, b and c have 3.5 each.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "absl/container/inlined_vector.h"

namespace gleaner::netsim {

class FairRates {
 public:
  // `capacities[c]` is what channel c carries, in any unit; > 0.
  explicit FairRates(const std::vector<double>& capacities);

  // Adds a channel and returns its index.
  uint32_t add_channel(double capacity);
  // Adds a flow over these channels, of which there is at least one and none twice. The weight is a whole number, 1 or
  // more. The flow's rate is 0 until update(). Returns its index. Indexes of removed flows are used again.
  uint32_t add(std::span<const uint32_t> path, double weight = 1);
  void remove(uint32_t flow);

  // Computes the rates after any number of calls of add() and remove(). Returns the flows whose rates changed; valid
  // until the next call.
  const std::vector<uint32_t>& update();

  double rate(uint32_t flow) const { return flows_[flow].rate; }
  // Counts how many rates update() has computed so far, to measure its work.
  uint64_t computed() const { return computed_; }

 private:
  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
  struct Hop {
    uint32_t channel = 0;
    uint32_t position = 0;  // in the channel's entries
  };
  struct Entry {
    uint32_t flow = 0;
    uint32_t hop = 0;  // in the flow's path
  };
  struct Flow {
    double weight = 1;
    double rate = 0;
    double next_rate = 0;              // during update(), of a chosen flow
    uint32_t bottleneck = kNone;       // kNone: the flow is new
    uint32_t next_bottleneck = kNone;  // during update(), of a chosen flow; kNone: not fixed yet
    bool chosen = false;               // its rate is being computed
    absl::InlinedVector<Hop, 8> path;
  };
  struct Channel {
    double capacity = 0;
    double left = 0;         // during fill(): capacity that is not given away yet
    uint32_t open = 0;       // during fill(): chosen flows whose rates are not fixed yet
    double open_weight = 0;  // during fill(): the sum of their weights, which are whole numbers, so it is exact
    bool listed = false;     // is in listed_
    bool touched = false;    // is in touched_
    std::vector<Entry> entries;
  };
  struct Offer {
    double level = 0;  // what the channel offered its open flows when the offer was made; it only grows
    uint32_t channel = 0;
    bool operator>(const Offer& other) const {
      return level != other.level ? level > other.level : channel > other.channel;
    }
  };

  void touch(uint32_t channel);
  void choose(uint32_t flow);
  void choose_changed();
  void fill();
  void fix(uint32_t channel, double level);
  // Chooses flows that have no bottleneck any more, or make another flow lose its own. Returns whether there are any.
  bool choose_displaced();
  void collect_displaced(uint32_t channel);

  std::vector<Channel> channels_;
  std::vector<Flow> flows_;
  std::vector<uint32_t> free_;       // indexes of removed flows
  std::vector<uint32_t> touched_;    // channels that changed since update()
  std::vector<uint32_t> chosen_;     // during update()
  std::vector<uint32_t> listed_;     // during update(): channels of chosen flows
  std::vector<uint32_t> displaced_;  // during choose_displaced()
  std::vector<Offer> offers_;        // a min-heap, during fill()
  std::vector<uint32_t> changed_;
  uint64_t computed_ = 0;
};

}  // namespace gleaner::netsim
