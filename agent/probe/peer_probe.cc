#include "agent/probe/peer_probe.h"

#include <algorithm>
#include <array>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "agent/probe/measure.h"
#include "common/base/status_macros.h"
#include "common/base/thread.h"
#include "common/base/units.h"

namespace gleaner::probe {
namespace {

class Running : public PeerProbe {
 public:
  Running(const Env& env, Options options, std::unique_ptr<MeasureServer> server)
      : env_(env), options_(std::move(options)), server_(std::move(server)), thread_([this] { run(); }) {}
  ~Running() override {
    {
      absl::MutexLock lock(&mutex_);
      stopping_ = true;
    }
    thread_.join();
  }

  void set_needed(bool needed) override {
    absl::MutexLock lock(&mutex_);
    needed_ = needed;
  }
  double bits_per_second() const override {
    absl::MutexLock lock(&mutex_);
    return bits_per_second_;
  }
  Address address() const override { return server_->address(); }

 private:
  // False: it is time to stop.
  bool pause(absl::Duration time) {
    absl::MutexLock lock(&mutex_);
    mutex_.AwaitWithTimeout(absl::Condition(&stopping_), time);
    const auto wanted = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return stopping_ || needed_; };
    mutex_.Await(absl::Condition(&wanted));
    return !stopping_;
  }

  // With one of the peers, by chance, so that no agent is everybody's.
  absl::StatusOr<double> measure_once() {
    GLN_ASSIGN_OR_RETURN(std::vector<Address> peers, resolve(options_.peers));
    absl::Status last = absl::UnavailableError("there is no other agent");
    while (!peers.empty()) {
      std::array<uint8_t, 2> dice{};
      GLN_RETURN_IF_ERROR(env_.random->fill(dice));
      const size_t chosen = (dice[0] + 256U * dice[1]) % peers.size();
      absl::StatusOr<double> rate = measure(env_, peers[chosen], options_.secret);
      if (!absl::IsFailedPrecondition(rate.status())) return rate;  // that was this machine itself
      last = absl::UnavailableError("there is no other agent");
      peers.erase(peers.begin() + static_cast<std::ptrdiff_t>(chosen));
    }
    return last;
  }

  void run() {
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

  const Env env_;
  const Options options_;
  const std::unique_ptr<MeasureServer> server_;
  mutable absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool needed_ ABSL_GUARDED_BY(mutex_) = false;
  double bits_per_second_ ABSL_GUARDED_BY(mutex_) = 0;
  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<PeerProbe>> PeerProbe::start(const Env& env, Options options) {
  GLN_ASSIGN_OR_RETURN(std::unique_ptr<MeasureServer> server,
                       MeasureServer::start(env, options.listen, options.secret));
  return std::make_unique<Running>(env, std::move(options), std::move(server));
}

}  // namespace gleaner::probe
