#include "agent/spare/speed_check.h"

#include <algorithm>

namespace gleaner::spare {
namespace {

constexpr absl::Duration kWindow = absl::Seconds(10);
// Counters include frame headers, and may lag by up to a second at both ends of a window.
constexpr double kTolerance = 1.15;

}  // namespace

void SpeedCheck::observe(const Sample& sample) {
  if (!sample.traffic.has_value()) return;
  if (window_begin_.has_value() && sample.at - *window_begin_ < kWindow) return;
  window_begin_ = sample.at;
  const double received = received_.update(sample.at, sample.traffic->received_bytes).value_or(0);
  const double sent = sent_.update(sample.at, sample.traffic->sent_bytes).value_or(0);
  fastest_ = std::max({fastest_, 8 * received, 8 * sent});
}

CheckedSpeed SpeedCheck::update(const Sample& sample) {
  if (sample.claimed_bits_per_second != claim_ || sample.claimed_by != claimed_by_) {
    claim_ = sample.claimed_bits_per_second;
    claimed_by_ = sample.claimed_by;
    // The link may be another, slower one, so earlier traffic does not count.
    fastest_ = 0;
    window_begin_.reset();
    received_ = sent_ = Rate();
  }
  observe(sample);
  CheckedSpeed speed{claim_, claimed_by_, false, claim_};
  if (claim_ <= 0 || fastest_ <= claim_ * kTolerance) return speed;
  // A measurement is only a lower bound, so faster traffic does not contradict it.
  speed.contradicted = claimed_by_ != api::SpeedSource::kMeasured;
  speed.bits_per_second = fastest_;
  speed.source = api::SpeedSource::kMeasured;
  return speed;
}

}  // namespace gleaner::spare
