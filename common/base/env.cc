#include "common/base/env.h"

#include <openssl/rand.h>

#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"

namespace gleaner {
namespace {

class SystemClock : public Clock {
 public:
  absl::Duration since_start() const override {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return absl::DurationFromTimespec(now);
  }
  absl::Time now() const override { return absl::Now(); }
};

class SystemRandom : public Random {
 public:
  absl::Status fill(std::span<uint8_t> bytes) override {
    if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) == 1) return absl::OkStatus();
    return absl::UnavailableError("the system gives no random bytes (RAND_bytes failed); see getrandom(2)");
  }
};

}  // namespace

struct SystemEnv::Parts {
  explicit Parts(const LogOptions& options) : log(options) {}
  SystemClock clock;
  SystemRandom random;
  Log log;
};

SystemEnv::SystemEnv(LogOptions options)
    : parts_(std::make_unique<Parts>(options)), env_{&parts_->clock, &parts_->random, &parts_->log} {
  // Debian's build of Abseil checks for deadlocks at every lock, which costs 5 to 8 % of a worker's CPU time and a
  // tenth of the operator's. TSan checks for them in the tests.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
}

SystemEnv::~SystemEnv() = default;

}  // namespace gleaner
