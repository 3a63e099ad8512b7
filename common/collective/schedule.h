// Schedule is the one description of a collective operation: for each rank, the ordered list of its send and receive
// operations. Generators write schedules (algorithms.h); the checker, the oracle, the cost model, the simulator and the
// runtime read them. Pure.
//
// The vector is cut into `chunks` chunks of nearly equal size (chunk_begin()); an operation's slice is a range of
// consecutive chunks. A rank executes its operations in order:
//   send      starts to send the slice as it is now, and goes on with the next operation at once;
//   receive   waits for the peer's slice, and adds it to this rank's slice (reduce) or replaces this rank's slice
//   (copy).
// Messages between two ranks arrive in the order in which they are sent, and the n-th receive from a peer takes that
// peer's n-th send to this rank; both have the same slice and step. A send's slice must not change before the peer has
// received it. messages.h pairs sends with receives, and checker.h verifies all this.
//
// A schedule has a *postcondition*:
// - All-reduce: each rank begins with its contribution, a vector, and each chunk of each rank ends with the sum of all
//   contributions. A receive-reduce takes a partial sum, and a receive-copy takes a complete one.
// - All-gather: the vector has n blocks of the size of a contribution, which are its chunks. Rank r begins with its
//   contribution in chunk r, and each rank ends with all contributions. All receives are copies.
//
// `step` numbers the synchronous steps of the algorithm as papers count them. Ranks do not synchronize at steps: cost
// models, conflict counts and reports use the number.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace gleaner::collective {

struct Slice {
  uint32_t first = 0;  // index of the first chunk
  uint32_t count = 0;  // number of chunks, >= 1
  bool operator==(const Slice&) const = default;
};

enum class OpKind : uint8_t { kSend, kReceiveReduce, kReceiveCopy };

struct Op {
  OpKind kind = OpKind::kSend;
  uint32_t peer = 0;  // a rank
  uint32_t step = 0;  // does not decrease along a program
  Slice slice;
  bool operator==(const Op&) const = default;
};

// Disjoint groups of ranks. In a stage of a hierarchical algorithm each group runs a collective of its own, beside the
// others.
using Groups = std::vector<std::vector<uint32_t>>;

enum class Postcondition : uint8_t { kAllReduce, kAllGather };

// Returns "all-reduce", for example.
constexpr absl::string_view name_of(Postcondition postcondition) {
  return postcondition == Postcondition::kAllReduce ? "all-reduce" : "all-gather";
}

struct Schedule {
  std::string algorithm;  // as in `gleaner schedule --algorithm`
  Postcondition postcondition = Postcondition::kAllReduce;
  uint32_t ranks = 1;
  uint32_t chunks = 1;
  uint32_t steps = 0;                     // every op's step is below
  std::vector<Groups> stages;             // empty for algorithms without stages
  std::vector<std::vector<Op>> programs;  // by rank

  // Returns the number of contributions that fit into the vector.
  uint32_t blocks() const { return postcondition == Postcondition::kAllGather ? ranks : 1; }
  // Returns the number of chunks that a contribution has.
  uint32_t chunks_per_block() const { return chunks / blocks(); }
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
