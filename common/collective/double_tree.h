// The double binary tree all-reduce: each of two trees over all ranks sums one half of the vector towards its root and
// copies the sum back. The second tree is the first one with every rank decremented (modulo n), so that a rank that has
// children in one tree is a leaf of the other, and no rank sends more than 2 vectors or receives more than 2. Each half
// is cut into blocks, which follow each other through the tree: block t is one step behind block t - 1.
//
// A tree over the ranks i … j has the root i + 2^⌊log2(j - i + 1)⌋ - 1; the ranks before and after it form its two
// subtrees. So the odd positions, counted from 1, are leaves, and the tree has ⌊log2 n⌋ + 1 levels.
//
// Source: Luo §5.2.1. Its T(i, j, S) prints the children of (i + j)/2 as (3i + j)/2 - 1 and (i + 3j)/2 + 1, which are
// outside of i … j; the midpoints of the two subtrees are meant. For n = 2^k - 1 the roots above are these midpoints;
// for other n, midpoints would give some ranks children in both trees.
#pragma once

#include <cstdint>

#include "common/collective/schedule.h"

namespace gleaner::collective {

inline constexpr uint32_t kDefaultTreeBlocks = 8;

// `blocks`: of each half. More blocks use the links better and take more steps: 2 ⌊log2 n⌋ + blocks - 1. Requires
// ranks >= 1, blocks >= 1.
Schedule double_tree(uint32_t ranks, uint32_t blocks, OnlyRank only = {});

}  // namespace gleaner::collective
