#include "cli/invited_summers.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/token_file.h"
#include "common/base/own_network.h"
#include "common/base/secret_file.h"
#include "common/base/status_macros.h"
#include "common/proto/proof.h"

namespace gleaner::cli {

void add_invite_flags(flags::Command& command, InviteFlags& flags) {
  command
      .add_text("--invite", flags.summers,
                "Summers that wait for jobs (gleaner-summer --await-jobs) and that the job invites, HOST:PORT,...; the "
                "job goes on without those that can't come")
      .environment("GLEANER_SUMMERS");
  command.add_text("--invite-token-file", flags.token_file, "File with the token of the invited summers")
      .environment("GLEANER_SUMMERS_TOKEN_FILE");
}

absl::StatusOr<InvitedSummers> to_invited_summers(const InviteFlags& flags) {
  InvitedSummers invited;
  for (const absl::string_view text : absl::StrSplit(flags.summers, ',', absl::SkipWhitespace())) {
    const auto address = Address::parse(absl::StripAsciiWhitespace(text));
    if (!address.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("--invite (GLEANER_SUMMERS): ", address.status().message()));
    }
    if (address->port == 0 || std::ranges::find(invited.addresses, *address) != invited.addresses.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--invite (GLEANER_SUMMERS) has ", address->to_string(),
                       address->port == 0 ? ": expected the port on which the summer waits" : " twice"));
    }
    invited.addresses.push_back(*address);
  }
  if (invited.addresses.empty()) return invited;
  if (flags.token_file.empty()) {
    return absl::InvalidArgumentError(
        "--invite needs --invite-token-file (GLEANER_SUMMERS_TOKEN_FILE), the file that the summers have as "
        "--token-file");
  }
  GLN_ASSIGN_OR_RETURN(invited.shared_token, read_secret_file(flags.token_file));
  return invited;
}

absl::StatusOr<std::string> make_token_for(const InvitedSummers& invited, Random& random) {
  if (invited.addresses.empty()) return make_token(random);
  std::string nonce(proto::kNonceBytes, '\0');
  GLN_RETURN_IF_ERROR(random.fill({reinterpret_cast<uint8_t*>(nonce.data()), nonce.size()}));
  return proto::make_job_token(invited.shared_token, nonce);
}

absl::StatusOr<std::unique_ptr<invitation::Inviter>> invite(const Env& env, const InvitedSummers& invited,
                                                            const std::string& job, uint32_t summers,
                                                            const std::string& token, coordinator::Server* server) {
  if (invited.addresses.empty()) return nullptr;
  const std::optional<std::string> nonce = proto::nonce_of_job_token(invited.shared_token, token);
  if (!nonce.has_value()) {
    return absl::InvalidArgumentError(
        "the job's token in --token-file was not made with the token of the invited summers, so they can't find it; "
        "name a file that does not exist, which the coordinator makes");
  }
  invitation::InviterOptions options;
  options.invitation = {job, server->address(), network_id(), "", *nonce};
  options.summers = invited.addresses;
  options.token = invited.shared_token;
  return invitation::Inviter::start(env, std::move(options), [summers, server](uint32_t counted) {
    // FailedPrecondition: the job has begun, and summers join and leave at any time.
    server->set_summers(summers + counted).IgnoreError();
  });
}

}  // namespace gleaner::cli
