// Inviter invites waiting summers to a job, each on a thread of its own ("gln-invite").
//
// The inviter dials each summer again if it can't be reached, serves another job, or is lost: after pauses that double
// from 1 s to 30 s. It gives up a summer whose answer stays the same, such as one with another token. It logs a warning
// for each new reason.
//
// The inviter *counts on* a summer from the start until the first attempt fails, and again from the time at which the
// summer accepts an invitation until that stream ends. A summer that accepts and does not join the job within 10 s has
// failed. So a job that waits for the summers on which the inviter counts soon begins.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/address.h"
#include "common/base/env.h"
#include "common/invitation/invitation.h"

namespace gleaner::invitation {

struct InviterOptions {
  Invitation invitation;  // `summer` is set for each summer
  std::vector<Address> summers;
  std::string token;  // of the summers
};

class Inviter {
 public:
  // Called with the number of summers on which the inviter counts, when that changes, on one thread at a time.
  using OnCount = std::function<void(uint32_t)>;

  // ResourceExhausted: there are too few threads.
  static absl::StatusOr<std::unique_ptr<Inviter>> start(const Env& env, InviterOptions options, OnCount on_count);
  // Ends all streams. A summer that has joined its job serves on.
  virtual ~Inviter() = default;
};

}  // namespace gleaner::invitation
