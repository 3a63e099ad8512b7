// Counters are an engine's counts since its start, and the memory that it uses.
#pragma once

#include <cstdint>

namespace gleaner::engine {

struct Counters {
  uint64_t contributions = 0;  // contributions accepted
  uint64_t sums = 0;           // sums made
  uint64_t summed_bytes = 0;   // bytes of the sums made
  uint64_t duplicates = 0;     // repeated contributions and repeated kHand frames
  uint64_t resent = 0;         // results sent again to a worker that repeated its contribution
  uint64_t fenced = 0;         // frames, or keys of a kAck, that were meant for an earlier owner
  uint64_t takeovers = 0;      // takeovers in which every worker has reported its step or version
  uint64_t handed = 0;         // results and running sums received from workers by kHand
  uint64_t deferred = 0;       // pushes answered by kDefer
  // The three fields below count whole memory blocks (block_size()), not payloads. The cap limits memory_bytes only: a
  // running sum exists for as long as this summer owns its partition, and no worker could continue without the results
  // that workers hand on.
  uint64_t memory_bytes = 0;       // reserved for sums, retained results and waiting contributions
  uint64_t accumulated_bytes = 0;  // of running sums
  uint64_t handed_bytes = 0;       // of results that workers hand on or have handed on

  friend Counters operator+(const Counters& a, const Counters& b) {
    return {a.contributions + b.contributions,
            a.sums + b.sums,
            a.summed_bytes + b.summed_bytes,
            a.duplicates + b.duplicates,
            a.resent + b.resent,
            a.fenced + b.fenced,
            a.takeovers + b.takeovers,
            a.handed + b.handed,
            a.deferred + b.deferred,
            a.memory_bytes + b.memory_bytes,
            a.accumulated_bytes + b.accumulated_bytes,
            a.handed_bytes + b.handed_bytes};
  }
};

}  // namespace gleaner::engine
