// Schedule is the one description of a collective operation: for each rank, the ordered list of its send and receive
// operations. Generators write schedules (algorithms.h); the checker, the oracle, the cost model, the simulator and the
// runtime read them. Pure.
//
// The vector is cut into `chunks` chunks: where it has several blocks (postcondition.h), each block is a chunk; a
// single block has chunks of nearly equal size (chunk_begin()). An operation's slice is a range of consecutive chunks.
// A rank executes its operations in order:
//   send      starts to send the slice as it is now, and goes on with the next operation at once;
//   receive   waits for the peer's slice, and adds it to this rank's slice (reduce) or replaces this rank's slice
//   (copy).
// Messages between two ranks arrive in the order in which they are sent, and the n-th receive from a peer takes that
// peer's n-th send to this rank. Both have the same slice, step and Take, so the program of one rank says all about its
// messages: a message that is reduced has a partial sum, one that is copied a complete one. A send's slice must not
// change before the peer has received it. messages.h pairs sends with receives, and checker.h verifies all this.
//
// A schedule has the postcondition of its Collective: executed by ranks that begin with their contributions, it leaves
// results where the collective says. Operations need no names of input, output and scratch memory, since the collective
// says which of them a chunk is on a rank.
//
// `step` numbers the synchronous steps of the algorithm as papers count them. Ranks do not synchronize at steps: cost
// models, conflict counts and reports use the number.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/collective/postcondition.h"

namespace gleaner::collective {

struct Slice {
  uint32_t first = 0;  // index of the first chunk
  uint32_t count = 0;  // number of chunks, >= 1
  bool operator==(const Slice&) const = default;
};

enum class OpKind : uint8_t { kSend, kReceive };
// How the receiver of a message takes it.
enum class Take : uint8_t { kReduce, kCopy };

struct Op {
  OpKind kind = OpKind::kSend;
  Take take = Take::kCopy;
  uint32_t peer = 0;  // a rank
  uint32_t step = 0;  // does not decrease along a program
  Slice slice;
  bool operator==(const Op&) const = default;
};

// Disjoint groups of ranks. In a stage of a hierarchical algorithm each group runs a collective of its own, beside the
// others.
using Groups = std::vector<std::vector<uint32_t>>;

// The only rank whose program a generator keeps. The programs of other ranks are then empty, so that memory grows with
// one program and not with all. Nothing: a generator keeps all programs.
using OnlyRank = std::optional<uint32_t>;

struct Schedule : Collective {
  std::string algorithm;  // as in `gleaner schedule --algorithm`
  uint32_t chunks = 1;
  uint32_t steps = 0;                     // every op's step is below
  std::vector<Groups> stages;             // empty for algorithms without stages
  std::vector<std::vector<Op>> programs;  // by rank

  uint32_t chunks_per_block() const { return chunks / blocks(); }
  // Returns the block to which a chunk belongs.
  uint32_t block_of(uint32_t chunk) const { return blocks() == 1 ? 0 : chunk; }
};

// Returns the first element of a chunk, of a vector with `elements` elements; chunk == chunks: the end. Chunks differ
// by at most one element, and may be empty.
constexpr uint64_t chunk_begin(uint64_t elements, uint32_t chunks, uint32_t chunk) {
  const uint64_t each = elements / chunks, rest = elements % chunks;
  return chunk * each + (chunk < rest ? chunk : rest);
}
constexpr uint64_t slice_elements(uint64_t elements, uint32_t chunks, const Slice& slice) {
  return chunk_begin(elements, chunks, slice.first + slice.count) - chunk_begin(elements, chunks, slice.first);
}

}  // namespace gleaner::collective
