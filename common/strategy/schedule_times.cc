#include "common/strategy/schedule_times.h"

#include <algorithm>
#include <cmath>

#include "common/base/status_macros.h"
#include "common/collective/messages.h"
#include "common/netsim/schedule_run.h"
#include "common/plan/partitioner.h"
#include "common/wire/frame.h"

namespace gleaner::strategy {
namespace {

constexpr double kLeastBytes = 2;        // of a tensor
constexpr double kSizesPerOctave = 2;    // that are simulated
constexpr double kFewPartitions = 8;     // up to which each number is simulated
constexpr double kFewMessages = 4096;    // as many partitions as have so few messages are simulated, too
constexpr uint64_t kLeastOfSteady = 32;  // partitions, before those that follow count as steady
constexpr double kSteady = 0.01;         // by which the times of further partitions may differ
constexpr double kManyPartitions = 1e9;  // so many that only each further one counts

}  // namespace

std::shared_ptr<ScheduleTimes> ScheduleTimes::make(Job job) {
  const uint64_t messages = collective::message_count(*job.schedule);
  if (2 * messages > kMostMessages) return nullptr;
  return std::shared_ptr<ScheduleTimes>(new ScheduleTimes(std::move(job), messages));
}

absl::StatusOr<double> ScheduleTimes::simulate(uint64_t count, double partition_bytes) const {
  const double bytes = job_.width * partition_bytes;
  netsim::Partitions partitions{.bytes = std::vector<double>(count, bytes),
                                .frame_bytes = wire::kHeaderBytes,
                                .partial_width = job_.partial_width,
                                .element_bytes = job_.width * job_.element_bytes};
  for (const uint32_t host : job_.host_of) {
    const plan::ScheduleLimits limits = plan::schedule_limits(
        bytes * job_.partial_width, job_.worker_bits_per_second[host], wire::kHeaderBytes, job_.round_trip_seconds);
    partitions.limits.push_back({.in_flight_bytes = limits.in_flight, .window_bytes = limits.peer_window});
  }
  GLN_ASSIGN_OR_RETURN(const netsim::RunResult run,
                       netsim::run_schedule(*job_.schedule, *job_.network, job_.host_of, partitions, {}));
  return run.seconds;
}

double ScheduleTimes::simulated(uint64_t count, double partition_bytes) {
  const auto [found, is_new] = seconds_.try_emplace({partition_bytes, count});
  if (is_new) found->second = simulate(count, partition_bytes).value();  // the job has a cost
  return found->second;
}

ScheduleTimes::Stream ScheduleTimes::stream(double count, double partition_bytes) {
  const double messages = count * static_cast<double>(messages_);
  if (messages <= kFewMessages || (count <= kFewPartitions && messages <= kMostMessages)) {
    return {count, simulated(static_cast<uint64_t>(count), partition_bytes), 0};
  }
  const double least = job_.stream_seconds_per_byte * partition_bytes;  // that the busiest channel needs
  Stream stream{1, simulated(1, partition_bytes), least};
  for (uint64_t next = 2; next * messages_ <= kMostMessages; next *= 2) {
    const double seconds = simulated(next, partition_bytes);
    const double before = stream.each;
    stream.each = (seconds - stream.seconds) / (static_cast<double>(next) - stream.partitions);
    if (static_cast<double>(next) >= count) return stream;
    stream.partitions = static_cast<double>(next);
    stream.seconds = seconds;
    const bool is_long = next >= kLeastOfSteady;
    if (is_long && stream.each >= (1 - kSteady) * least && std::abs(stream.each - before) <= kSteady * before) break;
  }
  stream.each = std::max(stream.each, least);
  return stream;
}

double ScheduleTimes::time_of(double count, double partition_bytes) {
  const Stream from = stream(count, partition_bytes);
  return from.seconds + (count - from.partitions) * from.each;
}

double ScheduleTimes::seconds(double bytes, double partition_bytes) {
  const double count = std::max(1.0, std::ceil(bytes / partition_bytes));
  const double each = std::max(bytes / count, kLeastBytes);
  const double step = std::floor(kSizesPerOctave * std::log2(each / kLeastBytes));
  const double low = kLeastBytes * std::exp2(step / kSizesPerOctave);
  const double high = kLeastBytes * std::exp2((step + 1) / kSizesPerOctave);
  const double below = time_of(count, low);
  if (each == low) return below;
  return below + (each - low) / (high - low) * (time_of(count, high) - below);
}

double ScheduleTimes::stream_seconds_per_byte(double partition_bytes) {
  return seconds(kManyPartitions * partition_bytes, partition_bytes) / (kManyPartitions * partition_bytes);
}

}  // namespace gleaner::strategy
