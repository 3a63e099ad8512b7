// Resume is the state that a member shows when it returns to a coordinator (common/proto/coordinator.proto, Resume).
// Pure.
#pragma once

#include <cstdint>
#include <string>

namespace gleaner::coordinator {

struct Resume {
  std::string session;      // the last Welcome.session that the member was told
  uint32_t committed = 0;   // epoch of its plan in force; 0: none yet
  uint32_t prepared = 0;    // the later epoch that the member was told to prepare; 0: none
  std::string plan_digest;  // SHA-256 of the serialized committed plan
  uint32_t member = 0;      // its number in that plan
  uint64_t term = 0;        // highest term of all coordinators that have welcomed the member
};

}  // namespace gleaner::coordinator
