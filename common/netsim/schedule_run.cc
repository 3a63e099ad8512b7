#include "common/netsim/schedule_run.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/collective/messages.h"
#include "common/netsim/host_map.h"
#include "common/netsim/processors.h"

namespace gleaner::netsim {
namespace {

using collective::Message;
using collective::Messages;
using collective::Op;
using collective::OpKind;
using collective::Schedule;

constexpr uint64_t kEventsPerProgress = 256;
constexpr double kTickSeconds = 5e-3;  // docs/protocol.md#slices

// A message's part in the run.
struct Transit {
  bool awaited = false;  // the receiver's program waits for it
  bool arrived = false;
};

class ScheduleRun {
 public:
  ScheduleRun(const Schedule& schedule, const Messages& messages, const topology::Topology& topology,
              const std::vector<uint32_t>& host_of, const Partitions& partitions, FlowNetwork network)
      : schedule_(schedule),
        messages_(messages),
        host_of_(host_of),
        partitions_(partitions),
        network_(std::move(network)),
        processors_(topology, host_of),
        transits_(messages.all().size() * partitions.bytes.size()),
        loads_(topology, messages_of_steps()),
        next_op_(partitions.bytes.size() * schedule.ranks, 0),
        has_begun_(next_op_.size(), false),
        next_partition_(schedule.ranks, 0),
        in_flight_bytes_(schedule.ranks, 0),
        step_end_(schedule.steps, 0) {}

  absl::StatusOr<RunResult> run(const Progress& progress);

 private:
  std::vector<uint64_t> messages_of_steps() const;
  // A rank asks the sender of a message for it.
  struct Question {
    double seconds = 0;
    uint64_t message = 0;  // in transits_
  };

  // Begins the rank's partitions for which there is room.
  absl::Status begin_in_turn(uint32_t rank);
  // Begins a partition, if that has not been done.
  absl::Status begin(uint32_t rank, uint64_t partition);
  // Executes a rank's operations on a partition up to the next one that has to wait.
  absl::Status go_on(uint32_t rank, uint64_t partition);
  // Returns the width of a message's values.
  uint32_t width_of(const Message& message) const {
    return message.take == collective::Take::kReduce ? partitions_.partial_width : 1;
  }
  // Returns the bytes of the vector in a message.
  double vector_bytes(uint64_t index) const;
  // Returns whether a message has no elements, so that it is not sent. Only partitions with fewer elements than chunks
  // have such messages.
  bool is_empty(uint64_t index) const {
    const double chunks_bytes = schedule_.chunks_per_block() * partitions_.element_bytes;
    return partitions_.bytes[partition_of(index)] < chunks_bytes && !(vector_bytes(index) > 0);
  }
  const Message& message_of(uint64_t index) const { return messages_.all()[index % messages_.all().size()]; }
  uint64_t partition_of(uint64_t index) const { return index / messages_.all().size(); }
  // Returns the connection between two ranks.
  uint32_t connection(uint32_t from, uint32_t to);
  // Gives work to the processor of a rank.
  absl::Status give(uint32_t rank, Processors::Work work, uint64_t id) {
    return processors_.give(rank, {work, id}, network_.now(), [this](auto done) { return carry_out(done); });
  }
  // A rank's processor has taken the vector over, has sent a message, or has received one.
  absl::Status carry_out(Processors::Done done);
  absl::Status hand_over(uint64_t index);
  absl::Status receive(uint64_t index);
  // Makes a question of the message for which a rank begins to wait, if its sender may not have begun the partition.
  void wait_for(uint64_t index);
  absl::Status ask();
  bool is_cut() const { return partitions_.bytes.size() > 1; }
  double work_bytes(uint64_t partition) const { return partitions_.bytes[partition] * partitions_.partial_width; }
  absl::Status waits_for_ever() const;
  RunResult result() const;

  const Schedule& schedule_;
  const Messages& messages_;
  const std::vector<uint32_t>& host_of_;
  const Partitions& partitions_;
  FlowNetwork network_;
  Processors processors_;                                // by rank
  absl::flat_hash_map<uint64_t, uint32_t> connections_;  // by sender << 32 | receiver
  std::vector<Transit> transits_;                        // by partition, then message
  ChannelLoads loads_;
  std::deque<Question> questions_;        // by time
  std::vector<uint32_t> next_op_;         // by partition, then rank
  std::vector<bool> has_begun_;           // by partition, then rank
  std::vector<uint64_t> next_partition_;  // by rank: the next one whose turn it is
  std::vector<double> in_flight_bytes_;   // by rank
  std::vector<double> step_end_;          // by step: when its last message arrived
  uint64_t arrived_ = 0;
};

std::vector<uint64_t> ScheduleRun::messages_of_steps() const {
  std::vector<uint64_t> counts(schedule_.steps, 0);
  for (const Message& message : messages_.all()) counts[message.step] += partitions_.bytes.size();
  return counts;
}

absl::Status ScheduleRun::begin_in_turn(uint32_t rank) {
  const double limit = is_cut() ? partitions_.limits[rank].in_flight_bytes : 0;
  for (uint64_t& next = next_partition_[rank]; next < partitions_.bytes.size(); ++next) {
    if (has_begun_[next * schedule_.ranks + rank]) continue;
    const double in_flight = in_flight_bytes_[rank];
    if (in_flight > 0 && in_flight + work_bytes(next) > limit) break;
    GLN_RETURN_IF_ERROR(begin(rank, next));
  }
  return absl::OkStatus();
}

absl::Status ScheduleRun::begin(uint32_t rank, uint64_t partition) {
  const uint64_t index = partition * schedule_.ranks + rank;
  if (has_begun_[index]) return absl::OkStatus();
  has_begun_[index] = true;
  in_flight_bytes_[rank] += work_bytes(partition);
  return go_on(rank, partition);
}

absl::Status ScheduleRun::go_on(uint32_t rank, uint64_t partition) {
  const std::vector<Op>& program = schedule_.programs[rank];
  const uint64_t first = partition * messages_.all().size();
  for (uint32_t& next = next_op_[partition * schedule_.ranks + rank]; next < program.size(); ++next) {
    const Op& op = program[next];
    const uint64_t index = first + messages_.index_of(rank, next);
    if (is_empty(index)) continue;
    if (op.kind != OpKind::kSend) {
      if (transits_[index].arrived) continue;
      transits_[index].awaited = true;
      wait_for(index);
      return absl::OkStatus();
    }
    GLN_RETURN_IF_ERROR(give(rank, Processors::Work::kSend, index));
  }
  in_flight_bytes_[rank] -= work_bytes(partition);
  return absl::OkStatus();
}

double ScheduleRun::vector_bytes(uint64_t index) const {
  const collective::Slice& slice = message_of(index).slice;
  const double bytes = partitions_.bytes[partition_of(index)];
  const uint32_t chunks = schedule_.chunks_per_block();
  if (!(partitions_.element_bytes > 0)) return bytes / chunks * slice.count;
  const double elements = std::max(1.0, std::ceil(bytes / partitions_.element_bytes));
  const auto begin = [&](uint32_t chunk) {
    return chunk / chunks * elements +
           static_cast<double>(collective::chunk_begin(static_cast<uint64_t>(elements), chunks, chunk % chunks));
  };
  return (begin(slice.first + slice.count) - begin(slice.first)) * (bytes / elements);
}

absl::Status ScheduleRun::hand_over(uint64_t index) {
  const Message& message = message_of(index);
  const double bytes = vector_bytes(index) * width_of(message) + partitions_.frame_bytes;
  GLN_ASSIGN_OR_RETURN(const std::span<const uint32_t> channels,
                       network_.send(index, connection(message.from, message.to), bytes, partition_of(index)));
  loads_.add(message.step, channels, bytes);
  return absl::OkStatus();
}

uint32_t ScheduleRun::connection(uint32_t from, uint32_t to) {
  const auto [found, is_new] = connections_.try_emplace(uint64_t{from} << 32 | to);
  const double window = is_cut() ? partitions_.limits[from].window_bytes : 0;
  if (is_new) found->second = network_.connect(host_of_[from], host_of_[to], 1, window);
  return found->second;
}

absl::Status ScheduleRun::carry_out(Processors::Done done) {
  switch (done.work) {
    case Processors::Work::kCall:
      return begin_in_turn(static_cast<uint32_t>(done.id));
    case Processors::Work::kSend:
      return hand_over(done.id);
    case Processors::Work::kReceive:
      return receive(done.id);
  }
  return absl::OkStatus();
}

absl::Status ScheduleRun::receive(uint64_t index) {
  const uint64_t partition = partition_of(index);
  const Message& message = message_of(index);
  transits_[index].arrived = true;
  ++arrived_;
  step_end_[message.step] = network_.now();
  if (!has_begun_[partition * schedule_.ranks + message.to]) {
    GLN_RETURN_IF_ERROR(begin(message.to, partition));
  } else if (transits_[index].awaited) {
    GLN_RETURN_IF_ERROR(go_on(message.to, partition));
  }
  return begin_in_turn(message.to);
}

void ScheduleRun::wait_for(uint64_t index) {
  const uint64_t partition = partition_of(index);
  const uint32_t from = message_of(index).from;
  if (has_begun_[partition * schedule_.ranks + from]) return;
  // The first tick finds that the rank waits, the second one that it has waited since the first.
  questions_.push_back({(std::floor(network_.now() / kTickSeconds) + 2) * kTickSeconds, index});
}

absl::Status ScheduleRun::ask() {
  for (; !questions_.empty() && questions_.front().seconds <= network_.now(); questions_.pop_front()) {
    const uint64_t index = questions_.front().message;
    GLN_RETURN_IF_ERROR(begin(message_of(index).from, partition_of(index)));
  }
  return absl::OkStatus();
}

absl::Status ScheduleRun::waits_for_ever() const {
  for (size_t i = 0; i < next_op_.size(); ++i) {
    const auto rank = static_cast<uint32_t>(i % schedule_.ranks);
    if (next_op_[i] >= schedule_.programs[rank].size()) continue;
    const Op& op = schedule_.programs[rank][next_op_[i]];
    return absl::InvalidArgumentError(absl::StrCat("the schedule never ends: rank ", rank, " waits in step ", op.step,
                                                   " for a message from rank ", op.peer));
  }
  return absl::OkStatus();
}

RunResult ScheduleRun::result() const {
  RunResult result = {.events = network_.events()};
  for (uint32_t step = 0; step < schedule_.steps; ++step) {
    const double end = std::max(result.seconds, step_end_[step]);
    result.steps.push_back({end - result.seconds, loads_.worst()[step]});
    result.seconds = end;
  }
  if (const double end = processors_.end_seconds(); end > result.seconds && !result.steps.empty()) {
    result.steps.back().seconds += end - result.seconds;
    result.seconds = end;
  }
  return result;
}

absl::StatusOr<RunResult> ScheduleRun::run(const Progress& progress) {
  for (uint32_t rank = 0; rank < schedule_.ranks; ++rank) {
    GLN_RETURN_IF_ERROR(give(rank, Processors::Work::kCall, rank));
  }
  std::vector<uint64_t> arrived;
  for (uint64_t turn = 1;; ++turn) {
    const double next_question = questions_.empty() ? FlowNetwork::kNever : questions_.front().seconds;
    GLN_ASSIGN_OR_RETURN(const bool more,
                         network_.advance(arrived, std::min(next_question, processors_.next_seconds())));
    if (!more) break;
    GLN_RETURN_IF_ERROR(ask());
    for (const uint64_t index : arrived) {
      GLN_RETURN_IF_ERROR(give(message_of(index).to, Processors::Work::kReceive, index));
    }
    arrived.clear();
    GLN_RETURN_IF_ERROR(processors_.advance(network_.now(), [this](auto done) { return carry_out(done); }));
    if (progress && turn % kEventsPerProgress == 0) {
      progress(static_cast<double>(arrived_) / static_cast<double>(transits_.size()));
    }
  }
  GLN_RETURN_IF_ERROR(waits_for_ever());
  return result();
}

}  // namespace

Partitions uncut(double bytes) { return {.bytes = {bytes}}; }

absl::StatusOr<RunResult> run_schedule(const Schedule& schedule, const topology::Network& network,
                                       const std::vector<uint32_t>& host_of, const Partitions& partitions,
                                       const Conditions& conditions, const Progress& progress) {
  GLN_ASSIGN_OR_RETURN(const Messages messages, Messages::make(schedule));
  GLN_RETURN_IF_ERROR(check_hosts("rank", host_of, schedule.ranks, network.topology));
  if (partitions.bytes.size() > 1 && partitions.limits.size() != schedule.ranks) {
    return absl::InvalidArgumentError(absl::StrCat("there are limits for ", partitions.limits.size(),
                                                   " ranks; several partitions need one for each of ", schedule.ranks));
  }
  GLN_ASSIGN_OR_RETURN(FlowNetwork flows, FlowNetwork::make(network, conditions));
  return ScheduleRun(schedule, messages, network.topology, host_of, partitions, std::move(flows)).run(progress);
}

}  // namespace gleaner::netsim
