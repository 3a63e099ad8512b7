#include "common/collective/double_tree.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "common/collective/schedule_builder.h"

namespace gleaner::collective {
namespace {

struct Node {
  uint32_t parent = 0;  // itself: the root
  uint32_t height = 0;  // steps from the farthest leaf below; 0: a leaf
  uint32_t depth = 0;   // steps from the root
};

// Fills in the nodes begin … end - 1. Returns their root.
uint32_t build(std::vector<Node>& nodes, uint32_t begin, uint32_t end, uint32_t depth) {
  const uint32_t root = begin + std::bit_floor(end - begin) - 1;
  nodes[root] = {root, 0, depth};
  const auto add_child = [&](uint32_t child_begin, uint32_t child_end) {
    if (child_begin == child_end) return;
    const uint32_t child = build(nodes, child_begin, child_end, depth + 1);
    nodes[child].parent = root;
    nodes[root].height = std::max(nodes[root].height, nodes[child].height + 1);
  };
  add_child(begin, root);
  add_child(root + 1, end);
  return root;
}

}  // namespace

Schedule double_tree(uint32_t ranks, uint32_t blocks, OnlyRank only) {
  ScheduleBuilder builder("double-tree", {ranks}, 2 * blocks, only);
  std::vector<Node> nodes(ranks);
  const uint32_t levels = nodes[build(nodes, 0, ranks, 0)].height;  // below the root
  // A node passes block t to its parent in step t + height. The root has block t after step t + levels - 1, and a node
  // gets it back in step t + levels + depth - 1.
  for (uint32_t step = 0; ranks > 1 && step < 2 * levels + blocks - 1; ++step) {
    for (const uint32_t tree : {0u, 1u}) {
      const auto rank_of = [&](uint32_t node) { return (node + ranks - tree) % ranks; };
      const auto block_of = [&](uint32_t first_step) { return Slice{tree * blocks + step - first_step, 1}; };
      for (uint32_t node = 0; node < ranks; ++node) {
        const Node& at = nodes[node];
        if (at.parent == node) continue;
        const uint32_t up = at.height, down = levels + at.depth - 1;
        if (step >= up && step < up + blocks) {
          builder.transfer(rank_of(node), rank_of(at.parent), block_of(up), Take::kReduce);
        }
        if (step >= down && step < down + blocks) {
          builder.transfer(rank_of(at.parent), rank_of(node), block_of(down), Take::kCopy);
        }
      }
    }
    builder.end_step();
  }
  return builder.take();
}

}  // namespace gleaner::collective
