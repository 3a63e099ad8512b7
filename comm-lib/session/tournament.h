// Which of m players has the most urgent partition: O(log m) to change one of them, O(1) to ask. A complete binary tree
// over the players in which every node holds the better of its two children.
#pragma once

#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gleaner::session {

// The least goes first.
struct Urgency {
  uint64_t turn = 0;  // among those deferred; 0: never deferred
  int32_t priority = 0;
  uint32_t partition = 0;
  friend auto operator<=>(const Urgency&, const Urgency&) = default;
};

class Tournament {
 public:
  static constexpr Urgency kOut{UINT64_MAX, INT32_MAX, UINT32_MAX};  // this player does not take part

  // Everybody is out.
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

  const Urgency& best() const { return nodes_[1].urgency; }  // kOut: nobody takes part
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
