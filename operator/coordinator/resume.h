// What a member shows when it comes back to a coordinator (common/proto/coordinator.proto, Resume). Pure.
#pragma once

#include <cstdint>
#include <string>

namespace gleaner::coordinator {

struct Resume {
  std::string session;      // Welcome.session of the coordinator it was in with
  uint32_t committed = 0;   // epoch in force; 0: none yet
  uint32_t prepared = 0;    // epoch above it that it was told to prepare; 0: none
  std::string plan_digest;  // SHA-256 of the serialized committed plan
  uint32_t member = 0;      // its place in that plan
  uint64_t term = 0;        // highest of any coordinator that has welcomed it
};

}  // namespace gleaner::coordinator
