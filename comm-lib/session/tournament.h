// Which of m players has the least key: O(log m) to change one key, O(1) to ask. A complete binary tree over the
// players in which every node holds the better of its two children.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gleaner::session {

class Tournament {
 public:
  static constexpr uint64_t kOut = UINT64_MAX;  // this player does not take part

  // Everybody is out.
  void reset(size_t players) {
    width_ = std::bit_ceil(players + 1);
    nodes_.assign(2 * width_, Node{});
  }

  void set(uint32_t player, uint64_t key) {
    size_t node = width_ + player;
    nodes_[node] = {key, player};
    for (node /= 2; node > 0; node /= 2) {
      const Node& left = nodes_[2 * node];
      const Node& right = nodes_[2 * node + 1];
      nodes_[node] = right.key < left.key ? right : left;
    }
  }

  uint64_t best_key() const { return nodes_[1].key; }  // kOut: nobody takes part
  uint32_t best_player() const { return nodes_[1].player; }

 private:
  struct Node {
    uint64_t key = kOut;
    uint32_t player = 0;
  };
  size_t width_ = 1;
  std::vector<Node> nodes_ = std::vector<Node>(2);
};

}  // namespace gleaner::session
