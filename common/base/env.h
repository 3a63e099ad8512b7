// Env holds the sources of non-determinism (clock, random numbers, log), which are passed to the code that needs them.
// No module reads a clock, draws a random number or logs in any other way. Protocol cores take times as arguments and
// get no Env.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/log.h"

namespace gleaner {

// Thread safe.
class Clock {
 public:
  virtual ~Clock() = default;
  // Returns monotonic time since an arbitrary zero, for durations and deadlines.
  virtual absl::Duration since_start() const = 0;
  // Returns wall-clock time, for people.
  virtual absl::Time now() const = 0;
};

class Random {
 public:
  virtual ~Random() = default;
  // Fills `bytes` with cryptographically strong random bytes, for nonces and secrets. Unavailable when the system has
  // no entropy. Thread safe.
  [[nodiscard]] virtual absl::Status fill(std::span<uint8_t> bytes) = 0;
};

struct Env {
  const Clock* clock;
  Random* random;
  Log* log;
};

// SystemEnv provides the machine's clocks, OpenSSL's random numbers and a log on standard error. main() or a gln
// session owns it. It must outlive all users of its Env.
class SystemEnv {
 public:
  explicit SystemEnv(LogOptions options);
  ~SystemEnv();
  const Env& env() const { return env_; }

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
  Env env_;
};

}  // namespace gleaner
