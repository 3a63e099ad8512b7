// OneJob: the job whose members are the ends of a transport in tests and benchmarks.
#pragma once

#include "common/transport/transport.h"
#include "common/wire/handshake.h"

namespace gleaner::transport {

inline constexpr uint64_t kJob = 7;

// Both ends know the job's secret, unless a test changes it.
struct OneJob : wire::JobSecrets {
  wire::Secret secret{1, 2, 3};
  const wire::Secret* find(uint64_t job) const override { return job == kJob ? &secret : nullptr; }
};

inline wire::Header push_header(uint64_t step = 0) {
  wire::Header header;
  header.type = wire::FrameType::kPush;
  header.job = kJob;
  header.step = step;
  return header;
}

}  // namespace gleaner::transport
