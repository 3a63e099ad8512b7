#include "agent/probe/bandwidth_probe.h"

#include <utility>

#include "agent/probe/measure.h"
#include "common/base/units.h"

namespace gleaner::probe {

BandwidthProbe::BandwidthProbe(const Env& env, Options options, LoadBudget& budget)
    : env_(env),
      options_(std::move(options)),
      budget_(budget),
      thread_("gln-bandwidth", options_.period, Periodic::First::kAfterInterval, [this] { measure_next(); }) {}

void BandwidthProbe::set_peers(BandwidthPeers peers) {
  absl::MutexLock lock(&mutex_);
  host_of_ = std::move(peers.host_of);
  turns_.set_peers(std::move(peers.nodes), peers.grouped);
}

void BandwidthProbe::restore(const std::vector<api::PeerBandwidth>& entries) {
  absl::MutexLock lock(&mutex_);
  turns_.restore(entries);
}

BandwidthReport BandwidthProbe::report() const {
  absl::MutexLock lock(&mutex_);
  return {turns_.entries(), turns_.coverage(env_.clock->now()), measured_, declined_, failed_};
}

// Returns the measurement that is due, if there is one and it may begin.
std::optional<BandwidthProbe::Turn> BandwidthProbe::next_turn() {
  const absl::Duration now = env_.clock->since_start();
  if (!budget_.allows(now)) return std::nullopt;
  absl::MutexLock lock(&mutex_);
  const std::optional<std::string> node = turns_.next({env_.clock->now(), now});
  if (!node.has_value()) return std::nullopt;
  return Turn{*node, {host_of_.at(*node), options_.peer_port}};
}

void BandwidthProbe::measure_next() {
  const std::optional<Turn> turn = next_turn();
  if (!turn.has_value()) return;
  const absl::StatusOr<double> rate =
      measure(env_, turn->peer, options_.secret, {.budget = &budget_, .can_wait = true});
  if (rate.ok()) {
    env_.log->debug("measured the bandwidth to a peer", "node", turn->node, "rate", format_bits_per_second(*rate));
  } else {
    env_.log->debug("no bandwidth was measured", "node", turn->node, "why", rate.status().message());
  }
  absl::MutexLock lock(&mutex_);
  if (rate.ok()) {
    ++measured_;
    turns_.succeeded(turn->node, *rate, env_.clock->now());
    return;
  }
  ++(absl::IsResourceExhausted(rate.status()) ? declined_ : failed_);
  turns_.failed(turn->node, env_.clock->since_start());
}

}  // namespace gleaner::probe
