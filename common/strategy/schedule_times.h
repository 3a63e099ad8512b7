// ScheduleTimes says how long a schedule takes to sum a tensor in partitions, by simulations of what a job does
// (common/netsim/schedule_run.h): partitions follow each other, as many at a time as the runtime has in flight. Pure.
//
// A tensor in k partitions of p bytes is simulated when its time is asked for, and what was simulated is kept: k up to
// 8, or if they have few messages, else powers of two; p powers of the square root of 2. Between them times are linear
// in p, and in k. Partitions that follow take as long as the last ones once these keep the busiest channel busy, or
// when kMostMessages end the simulations.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/collective/schedule.h"
#include "common/topology/network.h"

namespace gleaner::strategy {

class ScheduleTimes {
 public:
  struct Job {
    std::shared_ptr<const collective::Schedule> schedule;
    std::shared_ptr<const topology::Network> network;
    std::vector<uint32_t> host_of;               // by rank
    std::vector<double> worker_bits_per_second;  // of the link of each worker
    double round_trip_seconds = 0;               // to the farthest worker
    uint32_t partial_width = 1;                  // step_patterns.h
    double width = 1;                            // bytes of a contribution for each byte of the vector
    uint32_t element_bytes = 4;                  // of the tensor's type
    // How long the busiest channel is busy for each byte of the vector.
    double stream_seconds_per_byte = 0;
  };

  // The most messages of one simulation; it takes about 0.1 s on one core.
  static constexpr uint64_t kMostMessages = 1 << 16;

  // Returns null if two partitions would have more than kMostMessages. Requires that the schedule has a cost on these
  // hosts (collective::cost()).
  static std::shared_ptr<ScheduleTimes> make(Job job);

  // Returns the time of a tensor in the fewest equal partitions of at most `partition_bytes`.
  double seconds(double bytes, double partition_bytes);
  // Returns the time for each byte of a tensor in very many partitions of this size.
  double stream_seconds_per_byte(double partition_bytes);

 private:
  // So many partitions, and the time of each further one.
  struct Stream {
    double partitions = 0;
    double seconds = 0;
    double each = 0;
  };

  explicit ScheduleTimes(Job job, uint64_t messages) : job_(std::move(job)), messages_(messages) {}

  // Returns the time of `count` partitions.
  double time_of(double count, double partition_bytes);
  // Returns a number of partitions of a simulated size and their time, from which the time of `count` follows.
  Stream stream(double count, double partition_bytes);
  double simulated(uint64_t count, double partition_bytes);
  absl::StatusOr<double> simulate(uint64_t count, double partition_bytes) const;

  const Job job_;
  const uint64_t messages_;                                // of a partition
  std::map<std::pair<double, uint64_t>, double> seconds_;  // by size, then number
};

}  // namespace gleaner::strategy
