// Everything non-deterministic that the rest of the code may ask for, injected as one Env: no module reads a clock,
// draws a random number or logs on its own. Protocol cores take times as event arguments and get no Env at all.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/log.h"

namespace gleaner {

class Clock {
 public:
  virtual ~Clock() = default;
  // Monotonic: its zero is arbitrary, it never goes back. For durations and deadlines.
  virtual absl::Duration since_start() const = 0;
  // Wall clock, for people.
  virtual absl::Time now() const = 0;
};

class Random {
 public:
  virtual ~Random() = default;
  // Cryptographically strong bytes for nonces and secrets; Unavailable when the system has no entropy. Thread safe.
  [[nodiscard]] virtual absl::Status fill(std::span<uint8_t> bytes) = 0;
};

struct Env {
  const Clock* clock;
  Random* random;
  Log* log;
};

// The machine's own clock and /dev/urandom. Owned by main() or by a gln session, and outlives everything built on it.
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
