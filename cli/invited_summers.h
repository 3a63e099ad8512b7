// Functions by which `gleaner coordinator` has the job that it coordinates invite waiting summers
// (common/invitation/invitation.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/address.h"
#include "common/base/env.h"
#include "common/flags/command.h"
#include "common/invitation/inviter.h"
#include "coordinator/service/server.h"

namespace gleaner::cli {

struct InviteFlags {
  std::string summers;     // "HOST:PORT,..."; empty: none
  std::string token_file;  // of the summers
};
// Adds --invite and --invite-token-file.
void add_invite_flags(flags::Command& command, InviteFlags& flags);

struct InvitedSummers {
  std::vector<Address> addresses;
  std::string shared_token;  // empty without addresses
};
// InvalidArgument: an address is malformed or comes twice, or one of the flags is missing. Other errors: the token
// can't be read.
absl::StatusOr<InvitedSummers> to_invited_summers(const InviteFlags& flags);

// Returns a new token of a job: one that the summers of `invited` can find, if there are any.
absl::StatusOr<std::string> make_token_for(const InvitedSummers& invited, Random& random);

// Invites the summers to the job of `server`, which then waits for the `summers` of --summers, and for the invited ones
// on which the inviter counts. `token`: the job's. `server` must outlive the result. Null: there are none to invite.
// InvalidArgument: the summers can't find the token.
absl::StatusOr<std::unique_ptr<invitation::Inviter>> invite(const Env& env, const InvitedSummers& invited,
                                                            const std::string& job, uint32_t summers,
                                                            const std::string& token, coordinator::Server* server);

}  // namespace gleaner::cli
