// The values of common/control that a member uses, by their short names.
#pragma once

#include "common/control/coordinator_messages.h"
#include "common/control/handshake.h"
#include "common/control/identity.h"
#include "common/control/member_messages.h"

namespace gleaner::member {

using control::Acknowledgement;
using control::Begun;
using control::Commit;
using control::CountPushPulls;
using control::Declare;
using control::Failed;
using control::Fault;
using control::Finished;
using control::Goodbye;
using control::Heartbeat;
using control::Leave;
using control::Prepare;
using control::PushPulls;
using control::Recalled;
using control::Refusal;
using control::Regroup;
using control::Report;
using control::Resume;
using control::Role;
using control::Welcome;
using control::Withdraw;

}  // namespace gleaner::member
