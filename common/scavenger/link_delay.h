// LinkDelay: the queueing delay on a summer's own link, told apart from the queues on the links of its workers.
//
// A worker's link is full by design, so packets wait there whether the summer's link is full or not. A round trip
// between two members passes both links twice, so its queueing delay is the sum of two terms, one for each link:
//
//   q(i, s) = L(i) + L(s)    worker i and the summer
//   q(i, j) = L(i) + L(j)    workers i and j
//
// Each worker i reports m(i), the mean of q(i, j) over the other workers j. The least-squares solution is then
//
//   L(i) = ((n - 1) m(i) - sum of all L) / (n - 2)    with: sum of all L = sum of all m / 2
//   L(s) = q(i, s) - L(i)                              for each i
//
// With two workers only the sum L(1) + L(2) = m is known; both get half of it. The estimate is the median of L(s) over
// the workers, so that a worker whose measurements are wrong does not count; it is at least 0 and at most the least
// q(i, s). Of the last kFilter estimates the least counts (the current-delay filter of RFC 6817, section 3.4.2): a
// queue lasts, while a processor that wakes up late delays single packets. The terms are means over both directions of
// a link: a summer sends as much as it receives. Pure; one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>

#include "absl/time/time.h"
#include "common/scavenger/queueing_delay.h"

namespace gleaner::scavenger {

// The delays of one worker's connections: to the summer, and to the other workers.
struct WorkerDelays {
  absl::Duration at;                            // when; monotonic time
  absl::Duration to_summer;                     // q(i, s)
  std::optional<absl::Duration> among_workers;  // m(i); none: the worker has not reported it
};

class LinkDelay {
 public:
  static constexpr size_t kFilter = 3;

  void update(uint32_t worker, const WorkerDelays& delays) { workers_[worker] = delays; }
  // Forgets a worker whose connection has ended.
  void remove(uint32_t worker) { workers_.erase(worker); }

  // Takes a new estimate, and returns the queueing delay on the summer's link, there and back: the least of the last
  // kFilter estimates. nullopt: no measurement of a worker that has reported is fresh. To be called once for each round
  // of update().
  std::optional<absl::Duration> estimate(absl::Duration now);

 private:
  std::optional<absl::Duration> estimate_now(absl::Duration now) const;

  std::map<uint32_t, WorkerDelays> workers_;
  std::deque<absl::Duration> last_;
};

}  // namespace gleaner::scavenger
