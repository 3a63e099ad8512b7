// Collective says of a collective operation which rank begins with which part of the vector, and must end with which.
// The checker, the oracle and the runtime read these rules, so they have no cases for single collectives. Pure.
//
// The vector of a collective is cut into *blocks*. Each rank has, conceptually, room for the whole vector. It *begins*
// with its contribution to some blocks, and must *end* with the result of some. A block has the contributions of all
// ranks, and its result is their sum, or it has that of a single rank, which is also its result. With n ranks:
//
//   collective       blocks  contributions to block b   a rank must end with
//   all-reduce       1       of all ranks               the block
//   reduce           1       of all ranks               the block, if the rank is the root
//   broadcast        1       of the root                the block
//   all-gather       n       of rank b                  all blocks
//   reduce-scatter   n       of all ranks               block r, for rank r
//   gather           n       of rank b                  all blocks, if the rank is the root
//   scatter          n       of the root                block r, for rank r
//   all-to-all       n·n     of rank b / n              the blocks b with b % n = r, for rank r
//
// So block i·n + j of an all-to-all goes from rank i to rank j. Where a rank neither begins nor must end with a block,
// the block is scratch memory of the rank, which a schedule may use for what passes through. A barrier needs no rules
// of its own: it is an all-gather of one byte per rank.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "absl/strings/string_view.h"

namespace gleaner::collective {

enum class Postcondition : uint8_t {
  kAllReduce,
  kReduce,
  kBroadcast,
  kAllGather,
  kReduceScatter,
  kGather,
  kScatter,
  kAllToAll,
};

// Returns all postconditions, in the order of the table.
std::span<const Postcondition> postconditions();
// Returns "all-reduce", for example.
absl::string_view name_of(Postcondition postcondition);
// Returns the postcondition with this name, or nothing.
std::optional<Postcondition> postcondition_named(absl::string_view name);
// Returns whether collectives of this kind have a root.
bool has_root(Postcondition postcondition);

struct Collective {
  uint32_t ranks = 1;
  Postcondition postcondition = Postcondition::kAllReduce;
  uint32_t root = 0;  // a rank; 0 for collectives without a root

  // Returns the number of blocks. An all-to-all must have fewer than 65,536 ranks.
  uint32_t blocks() const;
  // Returns the only rank with a contribution to a block. Nothing: all ranks have one.
  std::optional<uint32_t> contributor(uint32_t block) const;
  // Returns whether blocks have the contributions of all ranks, so that ranks add.
  bool adds() const { return !contributor(0).has_value(); }
  // Returns whether a rank begins with a contribution to a block.
  bool begins_with(uint32_t rank, uint32_t block) const { return contributor(block).value_or(rank) == rank; }
  // Returns whether a rank must end with the result of a block.
  bool ends_with(uint32_t rank, uint32_t block) const;
};

}  // namespace gleaner::collective
