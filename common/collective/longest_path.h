// LongestPath times a schedule: how long after its start the last message arrives. Pure.
//
// A schedule's messages depend on each other: a rank sends a message of a step when all messages of its earlier steps
// have arrived, and each message leaves a link after those that were sent over the link before. So the time is that of
// the longest path over these dependencies, and ranks do not wait for each other at steps. A ring costs the sum of its
// hops (Luo §5.2.1).
//
// - A message of S bytes that starts at t and has its path for itself leaves at t + S·β, where β is that of the slowest
//   channel, and arrives the path's latency α later.
// - The messages of one step that share a channel share its bandwidth: they leave when the channel could have carried
//   all of them, which it begins with the first that starts.
// - Messages of different steps follow each other on a channel, in the order of their steps.
// - A rank's processor takes its overhead o for each message that it sends or receives, one after the other (LogP). It
//   also takes o when the program hands the vector over to it, and when it hands the result back.
//
// common/netsim/schedule_run.h simulates the same messages, with exact shares at each moment, and takes a hundred times
// as long.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "common/collective/step_patterns.h"

namespace gleaner::collective {

class LongestPath {
 public:
  struct Value {
    double seconds = 0;
    // The sum over all steps of their messages' mean time from start to arrival.
    double mean_seconds = 0;
  };

  // The pairs of ranks that exchange messages, each way on its own.
  struct Connection {
    uint32_t from = 0;
    uint32_t to = 0;
    bool operator==(const Connection&) const = default;
  };

  // `channels`: their number in the topology. `patterns` are all steps of a schedule of `ranks` ranks.
  LongestPath(std::span<const StepPattern> patterns, uint32_t ranks, uint32_t channels);

  const std::vector<Connection>& connections() const { return connections_; }

  // The network below the connections.
  struct Path {
    std::span<const uint32_t> channels;
    double latency_seconds = 0;
  };
  using PathOf = absl::FunctionRef<Path(const Connection&)>;

  // Returns the time of the schedule. `seconds_per_chunk` is by channel, and `overheads` by rank, in seconds; without
  // any, processors take no time. A path is used until the next call of `path_of`.
  Value evaluate(PathOf path_of, std::span<const double> seconds_per_chunk, std::span<const double> overheads = {});

  // Returns the number of messages that evaluate() times.
  uint64_t message_count() const;

 private:
  struct Message {
    uint32_t connection = 0;
    uint32_t chunks = 0;
    uint32_t count = 1;  // so many messages of one step, which leave together
    uint32_t from = 0;
    uint32_t to = 0;
  };
  struct Pattern {
    uint32_t begin = 0;  // in messages_
    uint32_t end = 0;
  };
  // A channel that several connections use.
  struct Shared {
    uint32_t channel = 0;
    double seconds_per_chunk = 0;
  };
  struct Track {
    double seconds_per_chunk = 0;  // of the slowest channel
    double latency_seconds = 0;
    double left = 0;     // when the last message so far has left
    uint32_t begin = 0;  // in shared_
    uint32_t end = 0;
  };
  struct Channel {
    uint32_t users = 0;  // connections
    double free = 0;     // when it has carried the messages of earlier steps
    double start = 0;    // of the step's first message
    double seconds = 0;  // of the step's messages
  };

  // A rank's processor, and the messages of a step that arrive there.
  struct Processor {
    double free = 0;   // when it has handled the messages so far
    double first = 0;  // arrival
    uint32_t arrived = 0;
  };

  void lay(PathOf path_of, std::span<const double> seconds_per_chunk);
  double pass(const Pattern& pattern, std::span<const double> overheads);
  // Returns when a rank has sent `count` messages of a step.
  double sent(uint32_t rank, double overhead, uint32_t count);
  // Lets a rank receive the messages of a step, the last of which arrives at ready_[rank].
  void receive(uint32_t rank, double overhead);

  std::vector<Message> messages_;  // by pattern
  std::vector<Pattern> patterns_;
  std::vector<uint32_t> pattern_of_step_;
  std::vector<Connection> connections_;
  std::vector<Track> tracks_;          // by connection
  std::vector<Shared> shared_;         // by connection
  std::vector<Channel> channels_;      // all idle between calls
  std::vector<double> ready_;          // by rank: when all messages of earlier steps have arrived
  std::vector<double> starts_;         // by message of a pattern
  std::vector<Processor> processors_;  // by rank
};

}  // namespace gleaner::collective
