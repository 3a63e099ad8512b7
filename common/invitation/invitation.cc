#include "common/invitation/invitation.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "common/base/names.h"
#include "common/base/status_macros.h"
#include "common/proto/invitation.pb.h"
#include "common/proto/proof.h"

namespace gleaner::invitation {
namespace {

// Returns the host of a peer as gRPC names it: "ipv4:10.0.0.7:51234" or "ipv6:%5B2001:db8::1%5D:51234".
absl::StatusOr<std::string> host_of(absl::string_view peer) {
  absl::string_view rest = peer;
  if (absl::ConsumePrefix(&rest, "ipv4:") || absl::ConsumePrefix(&rest, "ipv6:")) {
    const std::string text = absl::StrReplaceAll(rest, {{"%5B", "["}, {"%5D", "]"}, {"%25", "%"}});
    if (const auto address = Address::parse(text); address.ok()) return address->host;
  }
  return absl::InvalidArgumentError(absl::StrCat("the inviter at ", quote(peer), " has no IP address"));
}

}  // namespace

std::string serialize(const Invitation& invitation) {
  v1::Invitation message;
  message.set_job(invitation.job);
  message.set_coordinator(invitation.coordinator.to_string());
  message.set_network(invitation.network);
  message.set_summer(invitation.summer);
  message.set_token_nonce(invitation.token_nonce);
  return message.SerializeAsString();
}

absl::StatusOr<Invitation> parse_invitation(const std::string& bytes) {
  v1::Invitation message;
  if (!message.ParseFromString(bytes)) return absl::InvalidArgumentError("the invitation can't be read");
  Invitation invitation;
  invitation.job = message.job();
  GLN_RETURN_IF_ERROR(check_name("the name of the invitation's job", invitation.job));
  GLN_ASSIGN_OR_RETURN(invitation.coordinator, Address::parse(message.coordinator()));
  if (invitation.coordinator.port == 0) {
    return absl::InvalidArgumentError("the invitation's coordinator has port 0; expected the port on which it listens");
  }
  invitation.network = message.network();
  invitation.summer = message.summer();
  // The summer tells this host to its job, as part of an address.
  GLN_RETURN_IF_ERROR(Address::parse(Address{invitation.summer, 1}.to_string()).status());
  invitation.token_nonce = message.token_nonce();
  if (invitation.token_nonce.size() != proto::kNonceBytes) {
    return absl::InvalidArgumentError(absl::StrCat("the invitation has a nonce of ", invitation.token_nonce.size(),
                                                   " bytes; expected ", proto::kNonceBytes));
  }
  return invitation;
}

absl::StatusOr<Address> coordinator_of(const Invitation& invitation, absl::string_view peer,
                                       absl::string_view network) {
  Address coordinator = invitation.coordinator;
  if (is_unspecified(coordinator.host)) {
    GLN_ASSIGN_OR_RETURN(coordinator.host, host_of(peer));
  }
  const bool elsewhere = !network.empty() && !invitation.network.empty() && network != invitation.network;
  if (elsewhere && is_loopback(coordinator.host)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the coordinator is on another host and listens on ", coordinator.to_string(),
                     ", which leads each host to itself; give it --listen 0.0.0.0:PORT, or an address of its host"));
  }
  return coordinator;
}

}  // namespace gleaner::invitation
