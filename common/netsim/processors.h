// Processors are those of the simulated hosts. A processor sends or receives one message at a time, which takes the
// overhead of its host (topology::Host). Messages that have arrived go first, then those to send in their order, as in
// the runtime's loop. A call takes as long twice: the program hands its tensor to the thread of that loop, and at the
// end the thread hands it back. Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "common/topology/topology.h"

namespace gleaner::netsim {

class Processors {
 public:
  enum class Work { kCall, kSend, kReceive };
  struct Done {
    Work work = Work::kSend;
    uint64_t id = 0;  // of the message; kCall: of the processor
  };

  // `host_of[i]` is the host with processor i.
  Processors(const topology::Topology& topology, const std::vector<uint32_t>& host_of);

  // Carries out the effect of work that is done.
  using CarryOut = absl::FunctionRef<absl::Status(Done)>;

  // Gives work to a processor, which begins with it now or later. A processor without overhead has done it at once, and
  // calls `carry_out`, whose error this returns.
  absl::Status give(uint32_t processor, Done work, double now, CarryOut carry_out);
  // Calls `carry_out` for the work that is done by `now`, in the order in which it was done. Returns its first error.
  absl::Status advance(double now, CarryOut carry_out);
  // Returns when all results are handed back, if that takes any time; else 0. Requires that no work is left.
  double end_seconds() const;
  // Returns when the next work is done; infinity: there is none.
  double next_seconds() const;

 private:
  struct Processor {
    double overhead_seconds = 0;
    bool is_busy = false;
    Done current;
    std::deque<uint64_t> arrived;  // messages that wait
    std::deque<Done> others;       // that wait
    bool has_call = false;
    double free = 0;  // when the last work was done
  };
  struct End {
    double seconds = 0;
    uint32_t processor = 0;
    bool operator>(const End& other) const {
      return seconds != other.seconds ? seconds > other.seconds : processor > other.processor;
    }
  };

  // Returns work that is done by `now`; nothing if there is none.
  std::optional<Done> take(double now);
  // Begins with the next work, if there is some.
  void begin(uint32_t processor, double now);

  std::vector<Processor> processors_;
  std::vector<End> ends_;  // a min-heap: of the work of each busy processor
};

}  // namespace gleaner::netsim
