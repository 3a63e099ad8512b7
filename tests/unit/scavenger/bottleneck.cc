#include "tests/unit/scavenger/bottleneck.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace gleaner::scavenger {
namespace {

constexpr double kIdle = 0.2;                                  // seconds in which the workers' links are idle
constexpr absl::Duration kPeerBase = absl::Microseconds(150);  // base round trip between two workers
constexpr double kPacketBits = 1500 * 8;                       // of the owner
constexpr double kMarkAt = 0.2;                                // share of the queue
// The time in which a worker's queue forgets its length, and by how much its length varies.
constexpr double kQueueMemory = 0.03, kQueueVariation = 0.15;

}  // namespace

std::string Scenario::to_string() const {
  return absl::StrCat(bits_per_second / 1e6, " Mbit/s, queue ", absl::FormatDuration(queue), ", base ",
                      absl::FormatDuration(base), ", discipline ", static_cast<int>(discipline), ", ", summers,
                      " summers, ", workers, " workers, seed ", seed);
}

Bottleneck::Bottleneck(const Scenario& scenario)
    : scenario_(scenario),
      random_(scenario.seed),
      step_(std::clamp(absl::ToDoubleSeconds(scenario.base) / 2, 1e-4, 5e-4)),
      base_(absl::ToDoubleSeconds(scenario.base)),
      limit_(absl::ToDoubleSeconds(scenario.queue)),
      worker_queues_(scenario.workers),
      summers_(scenario.summers) {
  std::uniform_real_distribution<double> phase(0, absl::ToDoubleSeconds(SummerPace::kRound));
  for (SummerState& summer : summers_) {
    summer.next_report = phase(random_);
    summer.workers.resize(scenario.workers);
    summer.pace.set_planned(scenario.planned * scenario.bits_per_second / scenario.summers);
  }
}

const std::vector<Second>& Bottleneck::run(absl::Duration end) {
  while (now_ < absl::ToDoubleSeconds(end)) step();
  return seconds_;
}

absl::Duration Bottleneck::delay_quantile(double q) const {
  std::vector<double> sorted = delays_;
  std::sort(sorted.begin(), sorted.end());
  return absl::Seconds(sorted.at(static_cast<size_t>(q * static_cast<double>(sorted.size() - 1))));
}

double Bottleneck::summer_rate(const SummerState& summer) const { return summer.pace.bits_per_second(); }

void Bottleneck::move_worker_queues() {
  if (now_ < kIdle) return;
  const double mean = absl::ToDoubleSeconds(scenario_.standing);
  const double keep = std::exp(-step_ / kQueueMemory);
  std::normal_distribution<double> turn(0, kQueueVariation * mean * std::sqrt(1 - keep * keep) + 1e-12);
  for (double& queue : worker_queues_) queue = std::max(0.0, mean + keep * (queue - mean) + turn(random_));
}

double Bottleneck::owner_rate() const {
  const bool is_there =
      now_ >= absl::ToDoubleSeconds(scenario_.owner_begin) && now_ < absl::ToDoubleSeconds(scenario_.owner_end);
  if (!is_there) return 0;
  const double delay = scenario_.discipline == Discipline::kFair ? owner_backlog_ : backlog_;
  switch (scenario_.owner) {
    case Owner::kNone:
      return 0;
    case Owner::kElastic:
      return std::min(cubic_ == nullptr ? 0 : cubic_->window / (base_ + delay), 4 * scenario_.bits_per_second);
    case Owner::kSteady:
      return scenario_.bits_per_second / 2;
    case Owner::kBursts:
      return std::fmod(now_, 1.0) < 0.5 ? scenario_.bits_per_second : 0;
  }
  return 0;
}

// CUBIC (RFC 9438) as a fluid: one reaction to congestion per round trip.
void Bottleneck::grow_owner(bool congested) {
  const bool is_there =
      now_ >= absl::ToDoubleSeconds(scenario_.owner_begin) && now_ < absl::ToDoubleSeconds(scenario_.owner_end);
  if (scenario_.owner != Owner::kElastic || !is_there) return cubic_.reset();
  if (cubic_ == nullptr) cubic_ = std::make_unique<Cubic>();
  const double delay = scenario_.discipline == Discipline::kFair ? owner_backlog_ : backlog_;
  const double round_trip = base_ + delay;
  cubic_->since_cut += step_;
  if (congested && (cubic_->slow_start || cubic_->since_cut > round_trip)) {
    cubic_->before_cut = cubic_->window;
    cubic_->window *= 0.7;
    cubic_->since_cut = 0;
    cubic_->slow_start = false;
  } else if (cubic_->slow_start) {
    cubic_->window += cubic_->window * step_ / round_trip;
  } else {
    const double lost = 0.3 * cubic_->before_cut / kPacketBits;
    const double target =
        0.4 * std::pow(cubic_->since_cut - std::cbrt(lost / 0.4), 3) * kPacketBits + cubic_->before_cut;
    cubic_->window = std::max({cubic_->window, std::min(target, 1.5 * cubic_->window),
                               cubic_->window + 0.5 * kPacketBits * step_ / round_trip});
  }
  cubic_->window = std::min(cubic_->window, 2 * scenario_.bits_per_second * (base_ + limit_));
}

void Bottleneck::serve_in_order(double owner_rate) {
  double summers = 0;
  for (const SummerState& summer : summers_) summers += summer_rate(summer);
  const double arriving = owner_rate + summers;
  const double full = backlog_ + (arriving / scenario_.bits_per_second - 1) * step_;
  const double lost = std::max(0.0, full - limit_) * scenario_.bits_per_second;  // bits
  backlog_ = std::clamp(full, 0.0, limit_);
  const bool marks = scenario_.discipline == Discipline::kEcn && backlog_ > kMarkAt * limit_;
  const bool congested = lost > 0 || marks;
  for (SummerState& summer : summers_) summer.lost |= congested;
  Second& second = seconds_.back();
  second.owner_bits += owner_rate * step_ - (arriving > 0 ? lost * owner_rate / arriving : 0);
  second.summers_bits += summers * step_ - (arriving > 0 ? lost * summers / arriving : 0);
  grow_owner(congested);
}

// Each of the owner's one connection and the summers' connections gets an equal share, and leaves to others what it
// does not use.
void Bottleneck::serve_fairly(double owner_rate) {
  struct Flow {
    double wants = 0;  // seconds of the link's time: what waits and what arrives in this step
    double connections = 1;
    double gets = 0;
  };
  std::vector<Flow> flows{{owner_backlog_ + owner_rate / scenario_.bits_per_second * step_, 1, 0}};
  for (const SummerState& summer : summers_) {
    flows.push_back({summer.backlog + summer_rate(summer) / scenario_.bits_per_second * step_,
                     static_cast<double>(scenario_.workers), 0});
  }
  double left = step_;
  for (size_t round = 0; round < flows.size() && left > 1e-15; ++round) {
    double hungry = 0;
    for (const Flow& flow : flows) hungry += flow.wants > flow.gets + 1e-15 ? flow.connections : 0;
    if (hungry == 0) break;
    const double each = left / hungry;
    for (Flow& flow : flows) {
      const double more = std::min(flow.wants - flow.gets, each * flow.connections);
      flow.gets += more;
      left -= more;
    }
  }
  Second& second = seconds_.back();
  owner_backlog_ = std::min(flows[0].wants - flows[0].gets, limit_);
  grow_owner(flows[0].wants - flows[0].gets > limit_);
  second.owner_bits += flows[0].gets * scenario_.bits_per_second;
  backlog_ = 0;
  for (size_t i = 0; i < summers_.size(); ++i) {
    const double waits = flows[i + 1].wants - flows[i + 1].gets;
    summers_[i].lost |= waits > limit_;
    summers_[i].backlog = std::min(waits, limit_);
    backlog_ = std::max(backlog_, summers_[i].backlog);
    second.summers_bits += flows[i + 1].gets * scenario_.bits_per_second;
  }
}

void Bottleneck::report(SummerState& summer) {
  const double seen_at = now_ - base_ - backlog_;
  double link = 0;
  for (const auto& [at, delay] : history_) {
    if (at > seen_at) break;
    link = delay;
  }
  const bool jumped = now_ >= absl::ToDoubleSeconds(scenario_.owner_begin);
  const absl::Duration clock = absl::Seconds(now_) + (jumped ? scenario_.clock_jump : absl::ZeroDuration());
  std::normal_distribution<double> noise(0, absl::ToDoubleSeconds(scenario_.noise));
  std::uniform_real_distribution<double> any(0, 1);
  if (std::exchange(summer.lost, false)) ++summer.congestion;
  for (uint32_t i = 0; i < scenario_.workers; ++i) {
    // A few of the other workers are enough here, since their links are alike.
    for (uint32_t next = 1; next < std::min(scenario_.workers, 6U); ++next) {
      const uint32_t j = (i + next) % scenario_.workers;
      const double delay = worker_queues_[i] + worker_queues_[j] + std::abs(noise(random_));
      summer.workers[i].update(j, clock, kPeerBase + absl::Seconds(delay));
    }
    summer.pace.on_report(i, decode_delay(encode_delay(summer.workers[i].mean(clock))));
    const double late = any(random_) < scenario_.late ? 0.02 * any(random_) : 0;
    const double delay = worker_queues_[i] + link + std::abs(noise(random_)) + late;
    summer.pace.on_path(i, clock, scenario_.base + absl::Seconds(delay), summer.congestion);
  }
  summer.pace.end_round(clock);
}

void Bottleneck::step() {
  if (now_ >= static_cast<double>(seconds_.size())) seconds_.emplace_back();
  move_worker_queues();
  const double rate = owner_rate();
  if (scenario_.discipline == Discipline::kFair) {
    serve_fairly(rate);
  } else {
    serve_in_order(rate);
  }
  history_.emplace_back(now_, backlog_);
  while (history_.front().first < now_ - 0.5) history_.pop_front();
  if (now_ >= absl::ToDoubleSeconds(scenario_.owner_begin)) delays_.push_back(backlog_);
  Second& second = seconds_.back();
  second.least_share = 1;
  second.most_share = 0;
  for (SummerState& summer : summers_) {
    if (now_ >= summer.next_report) {
      summer.next_report += absl::ToDoubleSeconds(SummerPace::kRound);
      report(summer);
    }
    second.least_share = std::min(second.least_share, summer.pace.share());
    second.most_share = std::max(second.most_share, summer.pace.share());
  }
  now_ += step_;
}

}  // namespace gleaner::scavenger
