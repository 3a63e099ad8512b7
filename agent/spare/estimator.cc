#include "agent/spare/estimator.h"

#include <algorithm>

namespace gleaner::spare {
namespace {

constexpr double kPressureBegins = 10, kPressureFull = 50;  // percent
constexpr double kBusy = 0.5;                               // share of allocatable

// Returns the share of the spare CPU that remains when tasks wait for a CPU. On a mostly idle machine PSI counts tasks
// that wait for other reasons, such as their own quota, so the result is then 1.
double left_under_pressure(double pressure, double used, double allocatable) {
  if (used < kBusy * allocatable) return 1;
  return std::clamp(1 - (pressure - kPressureBegins) / (kPressureFull - kPressureBegins), 0.0, 1.0);
}

void follow(Rate& rate, absl::Duration at, std::optional<double> count, double& last) {
  // If a reading is missing, or the counter fell, the last rate stays.
  if (count.has_value()) last = rate.update(at, *count).value_or(last);
}

}  // namespace

Estimator::Estimator(const EstimatorOptions& options)
    : options_(options),
      cpus_(options.fall, options.rise),
      memory_(options.fall, options.rise),
      bits_(options.fall, options.rise) {}

void Estimator::update_summers(const Sample& sample) {
  for (auto& [uid, rates] : summers_) rates.seen = false;
  summers_memory_bytes_ = 0;
  for (const SummerUse& use : sample.summers) {
    SummerRates& rates = summers_[use.uid];
    rates.seen = true;
    follow(rates.cpu, sample.at, use.cpu_seconds, rates.cpus);
    if (use.traffic.has_value()) {
      follow(rates.received, sample.at, use.traffic->received_bytes, rates.received_bytes_per_second);
      follow(rates.sent, sample.at, use.traffic->sent_bytes, rates.sent_bytes_per_second);
    } else {
      rates.received_bytes_per_second = rates.sent_bytes_per_second = 0;
    }
    summers_memory_bytes_ += use.memory_bytes;
  }
  absl::erase_if(summers_, [](const auto& entry) { return !entry.second.seen; });
}

void Estimator::update_use(const Sample& sample) {
  if (sample.cpu_seconds.has_value()) {
    const std::optional<double> rate = cpu_.update(sample.at, *sample.cpu_seconds);
    if (rate.has_value()) {
      all_cpus_ = *rate;
      last_.measured = true;
    }
  }
  if (sample.traffic.has_value()) {
    follow(received_, sample.at, sample.traffic->received_bytes, received_bytes_per_second_);
    follow(sent_, sample.at, sample.traffic->sent_bytes, sent_bytes_per_second_);
  }
  double summers_received = 0, summers_sent = 0;
  last_.summers_cpus = 0;
  for (const auto& [uid, rates] : summers_) {
    last_.summers_cpus += rates.cpus;
    summers_received += rates.received_bytes_per_second;
    summers_sent += rates.sent_bytes_per_second;
  }
  last_.summers_bits_per_second = 8 * std::max(summers_received, summers_sent);
  last_.used_cpus = std::max(0.0, all_cpus_ - last_.summers_cpus);
  // At least 0, since traffic between summers and workers of the same machine does not pass the NIC.
  last_.used_bits_per_second =
      8 * std::max({0.0, received_bytes_per_second_ - summers_received, sent_bytes_per_second_ - summers_sent});
  last_.cpu_pressure = sample.cpu_pressure.value_or(-1);
}

api::Spare Estimator::spare_now(const Sample& sample) const {
  api::Spare spare;
  if (last_.measured) {
    const double taken = std::max(sample.requested_cpus, last_.used_cpus);
    const double left = sample.allocatable_cpus * (1 - options_.margin) - taken;
    spare.cpus =
        std::max(0.0, left) * left_under_pressure(last_.cpu_pressure, last_.used_cpus, sample.allocatable_cpus);
  }
  double memory = sample.allocatable_memory_bytes - sample.requested_memory_bytes;
  if (sample.available_memory_bytes.has_value()) {
    memory = std::min(memory, *sample.available_memory_bytes + summers_memory_bytes_);
  }
  memory -= options_.margin * sample.allocatable_memory_bytes;
  spare.memory_bytes = memory <= 0 ? 0 : static_cast<uint64_t>(memory);
  spare.bits_per_second =
      std::max(0.0, last_.speed.bits_per_second * (1 - options_.margin) - last_.used_bits_per_second);
  return spare;
}

Estimate Estimator::update(const Sample& sample) {
  update_summers(sample);
  update_use(sample);
  last_.speed = speed_check_.update(sample);
  const api::Spare now = spare_now(sample);
  if (!last_.measured) return last_;  // before the second sample there are no spare resources
  last_.spare.cpus = cpus_.update(sample.at, now.cpus);
  last_.spare.memory_bytes = static_cast<uint64_t>(memory_.update(sample.at, static_cast<double>(now.memory_bytes)));
  last_.spare.bits_per_second = bits_.update(sample.at, now.bits_per_second);
  return last_;
}

}  // namespace gleaner::spare
