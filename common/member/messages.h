// Functions that encode the messages of a Membership as those of coordinator.proto. Pure.
#pragma once

#include "common/member/membership.h"
#include "common/proto/coordinator.pb.h"

namespace gleaner::member {

v1::MemberMessage encode(const Message& message);
void encode(const Resume& resume, v1::Resume* message);

}  // namespace gleaner::member
