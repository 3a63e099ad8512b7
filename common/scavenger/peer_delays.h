// PeerDelays holds the queueing delays between a worker and the other workers of its job. A summer learns from them how
// full the worker's own link is (link_delay.h). Pure; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "absl/time/time.h"
#include "common/scavenger/queueing_delay.h"

namespace gleaner::scavenger {

class PeerDelays {
 public:
  // Takes the round-trip time of the connection to another worker, measured at `now`; zero: no measurement.
  void update(uint32_t worker, absl::Duration now, absl::Duration round_trip);
  // Forgets the worker, and the base delay of its connection.
  void remove(uint32_t worker) { peers_.erase(worker); }
  // Returns m, the mean queueing delay over the other workers; nullopt: no measurement is fresh.
  std::optional<absl::Duration> mean(absl::Duration now) const;

 private:
  struct Peer {
    QueueingDelay delay;
    absl::Duration last;
    absl::Duration at;
  };
  std::map<uint32_t, Peer> peers_;
};

// Return a mean queueing delay as 32 bits of a frame, and back: in microseconds, plus 1; 0: none.
uint32_t encode_delay(std::optional<absl::Duration> mean);
std::optional<absl::Duration> decode_delay(uint32_t link);

}  // namespace gleaner::scavenger
