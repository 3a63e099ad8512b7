#include "agent/probe/peer_probe.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "common/base/thread.h"
#include "common/base/units.h"

namespace gleaner::probe {

PeerProbe::PeerProbe(const Env& env, Options options, LoadBudget& budget, std::unique_ptr<MeasureServer> server)
    : env_(env), options_(std::move(options)), budget_(budget), server_(std::move(server)), thread_([this] {
        run();
      }) {}

PeerProbe::~PeerProbe() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

void PeerProbe::set_needed(bool needed) {
  absl::MutexLock lock(&mutex_);
  needed_ = needed;
}

double PeerProbe::bits_per_second() const {
  absl::MutexLock lock(&mutex_);
  return bits_per_second_;
}

// Waits for `time` and then until a measurement is needed. Returns false when the probe stops.
bool PeerProbe::pause(absl::Duration time) {
  absl::MutexLock lock(&mutex_);
  mutex_.AwaitWithTimeout(absl::Condition(&stopping_), time);
  const auto wanted = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return stopping_ || needed_; };
  mutex_.Await(absl::Condition(&wanted));
  return !stopping_;
}

// Measures with a random peer, so that the load spreads over all agents.
absl::StatusOr<double> PeerProbe::measure_once() {
  GLN_ASSIGN_OR_RETURN(std::vector<Address> peers, resolve(options_.peers));
  absl::Status last = absl::UnavailableError("there is no other agent");
  while (!peers.empty()) {
    std::array<uint8_t, 2> dice{};
    GLN_RETURN_IF_ERROR(env_.random->fill(dice));
    const size_t chosen = (dice[0] + 256U * dice[1]) % peers.size();
    absl::StatusOr<double> rate = measure(env_, peers[chosen], options_.secret, {.budget = &budget_});
    if (!absl::IsFailedPrecondition(rate.status())) return rate;  // FailedPrecondition: the peer was this machine
    last = absl::UnavailableError("there is no other agent");
    peers.erase(peers.begin() + static_cast<std::ptrdiff_t>(chosen));
  }
  return last;
}

void PeerProbe::run() {
  name_this_thread("gln-probe");
  absl::Duration next = options_.first;
  while (pause(next)) {
    const absl::StatusOr<double> rate = measure_once();
    next = rate.ok() ? options_.period : options_.retry;
    if (!rate.ok()) {
      env_.log->debug("no measurement", "why", rate.status().message());
      continue;
    }
    env_.log->info("measured the bandwidth to another node", "rate", format_bits_per_second(*rate));
    absl::MutexLock lock(&mutex_);
    bits_per_second_ = std::max(bits_per_second_, *rate);
  }
}

absl::StatusOr<std::unique_ptr<PeerProbe>> PeerProbe::start(const Env& env, Options options, LoadBudget& budget) {
  GLN_ASSIGN_OR_RETURN(std::unique_ptr<MeasureServer> server,
                       MeasureServer::start(env, options.listen, options.secret, absl::Seconds(1), kMostTime, &budget));
  return std::unique_ptr<PeerProbe>(new PeerProbe(env, std::move(options), budget, std::move(server)));
}

}  // namespace gleaner::probe
