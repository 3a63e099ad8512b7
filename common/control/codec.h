// Functions that convert the messages between members and the coordinator to those of coordinator.proto and back. Pure.
//
// decode() checks its argument, since messages are not trusted. InvalidArgument names the rule that a message breaks.
// An observer's messages and the pieces of a recording have no value here: the coordinator passes them on as they are.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/control/coordinator_messages.h"
#include "common/control/handshake.h"
#include "common/control/identity.h"
#include "common/control/member_messages.h"
#include "common/proto/coordinator.pb.h"

namespace gleaner::control {

v1::MemberMessage encode(const MemberMessage& message);
// Decodes a message of a member that has joined. A message of a later version, and a piece of a recording, becomes a
// Heartbeat. A report keeps at most 64 epochs, more than a rank sends, and at most plan::kMaxMembers late summers; a
// time in it that is negative or not finite becomes 0. InvalidArgument: a plan, a tensor or an operation that is not
// valid, a second Join, or an observer's message.
absl::StatusOr<MemberMessage> decode(const v1::MemberMessage& message);

v1::CoordinatorMessage encode(const CoordinatorMessage& message);
// Decodes a message to a member that has joined. A message of a later version, of the handshake, or to an observer
// becomes a Heartbeat. InvalidArgument: the plan in Prepare is not valid.
absl::StatusOr<CoordinatorMessage> decode(const v1::CoordinatorMessage& message);

v1::CoordinatorMessage encode(const Challenge& challenge);
Challenge decode(const v1::Challenge& message);
v1::MemberMessage encode(const Join& join);
Join decode(const v1::Join& message);
v1::CoordinatorMessage encode(const Admission& admission);
Admission decode(const v1::Welcome& message);

// Returns the bytes of Join::identity.
std::string serialize(const Identity& identity);
// InvalidArgument: `bytes` are no Identity. Does not check the contents.
absl::StatusOr<Identity> parse_identity(const std::string& bytes);

v1::TraceOrder encode(TraceOrder order);
std::optional<TraceOrder> decode(v1::TraceOrder order);  // none: an order of a later version

}  // namespace gleaner::control
