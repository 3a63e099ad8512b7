// What a member says, as messages of coordinator.proto. Pure.
#pragma once

#include "common/member/membership.h"
#include "common/proto/coordinator.pb.h"

namespace gleaner::member {

v1::MemberMessage encode(const Saying& what);
void encode(const Resume& resume, v1::Resume* message);

}  // namespace gleaner::member
