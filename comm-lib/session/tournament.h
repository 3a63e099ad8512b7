// Tournament finds the player with the most urgent partition among m players: O(log m) to change a player, O(1) to
// find. It is a complete binary tree over the players in which every node holds the better of its two children.
#pragma once

#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gleaner::session {

// The least value is the most urgent.
struct Urgency {
  uint64_t deferral_number = 0;  // number of the partition's last deferral; 0: never deferred
  int32_t priority = 0;
  uint32_t partition = 0;
  friend auto operator<=>(const Urgency&, const Urgency&) = default;
};

class Tournament {
 public:
  static constexpr Urgency kOut{UINT64_MAX, INT32_MAX, UINT32_MAX};  // a player that does not take part

  // Sets the number of players. None of them takes part.
  void reset(size_t players) {
    width_ = std::bit_ceil(players + 1);
    nodes_.assign(2 * width_, Node{});
  }

  void set(uint32_t player, const Urgency& urgency) {
    size_t node = width_ + player;
    nodes_[node] = {urgency, player};
    for (node /= 2; node > 0; node /= 2) {
      const Node& left = nodes_[2 * node];
      const Node& right = nodes_[2 * node + 1];
      nodes_[node] = right.urgency < left.urgency ? right : left;
    }
  }

  const Urgency& best() const { return nodes_[1].urgency; }  // kOut: no player takes part
  uint32_t best_player() const { return nodes_[1].player; }

 private:
  struct Node {
    Urgency urgency = kOut;
    uint32_t player = 0;
  };
  size_t width_ = 1;
  std::vector<Node> nodes_ = std::vector<Node>(2);
};

}  // namespace gleaner::session
