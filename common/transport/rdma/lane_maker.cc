#include "common/transport/rdma/lane_maker.h"

#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/transport/rdma/connection.h"
#include "common/transport/rdma/transport.h"

namespace gleaner::transport::rdma {
namespace {

std::array<uint8_t, 16> to_bytes(const sockaddr_storage& address) {
  std::array<uint8_t, 16> bytes{};
  if (address.ss_family == AF_INET) {
    bytes[10] = bytes[11] = 0xff;
    std::memcpy(&bytes[12], &reinterpret_cast<const sockaddr_in&>(address).sin_addr, 4);
  } else {
    std::memcpy(bytes.data(), &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr, 16);
  }
  return bytes;
}

sockaddr_storage to_address(const std::array<uint8_t, 16>& bytes) {
  ibv_gid gid;
  std::memcpy(gid.raw, bytes.data(), sizeof(gid.raw));
  return address_of(gid);
}

}  // namespace

absl::Status LaneMaker::on_item(const PacketReader::Item& item) {
  const bool invites = connection_->peer().accepted;
  switch (item.kind) {
    case ItemKind::kAsk:
      if (invites && !invitation_.has_value()) return invite();
      break;
    case ItemKind::kPort:
      if (!invites && !invitation_.has_value()) return on_port(read_as<PortItem>(item.body));
      break;
    case ItemKind::kInvitation:
      if (!invites && !invitation_.has_value()) return on_invitation(read_as<InvitationItem>(item.body));
      break;
    default:
      if (item.number > kMostLanes) break;
      connection_->avoid_port_of(item.number);
      return absl::UnavailableError(absl::StrCat("the peer reports that lane ", item.number, " has failed"));
  }
  return absl::InvalidArgumentError("the peer sent an item about lanes that this side did not request");
}

// The accepting side.

absl::Status LaneMaker::invite() {
  GLN_ASSIGN_OR_RETURN(const wire::Nonce nonce, transport_->draw_nonce());
  static_assert(sizeof(nonce) == sizeof(InvitationItem));
  invitation_.emplace();
  std::copy_n(nonce.begin(), 16, invitation_->request.begin());
  std::copy_n(nonce.begin() + 16, 16, invitation_->answer.begin());
  ItemQueue& items = connection_->link()->sender().items();
  const PortTable& ports = transport_->ports();
  const int main = connection_->own_port();
  for (size_t i = 0; i < std::min<size_t>(ports.size(), kMostLanes + 1); ++i) {
    const bool is_main = static_cast<int>(i) == main;
    if (!is_main && !ports.is_usable(i)) continue;
    const uint16_t listens = transport_->listen_for_lanes(i);
    if (!is_main && (listens == 0 || ports.usable_bandwidth(i) == 0)) continue;
    const PortItem item{.address = to_bytes(ports[i].address),
                        .bits_per_second = ports.usable_bandwidth(i),
                        .port = listens,
                        .is_main = is_main,
                        .is_ethernet = ports[i].is_ethernet};
    items.push(ItemKind::kPort, 0, item);
  }
  items.push(ItemKind::kInvitation, 0, *invitation_);
  return absl::OkStatus();
}

bool LaneMaker::expects(const LaneGreeting& greeting) const {
  return connection_->peer().accepted && connection_->is_up() && invitation_.has_value() &&
         invitation_->request == greeting.secret;
}

void LaneMaker::accept(CmId id, const LaneGreeting& greeting) {
  rdma_cm_id* const asked = id.get();
  const int port = transport_->port_of(asked);
  auto lane = make_lane(greeting.number, port, greeting.bits_per_second);
  lane->set_id(std::move(id));
  const LaneTable& lanes = connection_->link()->lanes();
  if (port < 0 || greeting.number == 0 || greeting.number > kMostLanes || lanes[greeting.number] != nullptr) {
    transport_->reject(asked, "this lane can't be made: its number or its port is not valid");
    return log_missing_lane(*lane,
                            absl::InvalidArgumentError("the peer requested a lane whose number or port is not valid"));
  }
  const absl::Status status = open(*lane);
  if (!status.ok()) {
    transport_->reject(asked, status.message());
    return log_missing_lane(*lane, status);
  }
  const Lane& opened = *lane;
  const absl::Status answered = answer(std::move(lane), greeting);
  if (!answered.ok()) log_missing_lane(opened, answered);
}

// Adds the lane to the link before the answer is sent: the peer may write by the lane, and name it in grants, as soon
// as it has the answer. The event ESTABLISHED, which shows that the peer has the answer, comes later.
absl::Status LaneMaker::answer(std::unique_ptr<Lane> lane, const LaneGreeting& greeting) {
  LaneGreeting ours = greeting;
  ours.secret = invitation_->answer;
  Lane& ready = *lane;
  connection_->link()->add_lane(std::move(lane));
  GLN_RETURN_IF_ERROR(ready.make_ready());
  rdma_conn_param parameters = parameters_of(ready.pair_number(), &ours, sizeof(ours));
  if (rdma_accept(ready.id(), &parameters) != 0) return verbs_error(errno, "can't accept a lane");
  return absl::OkStatus();
}

// The connecting side.

absl::Status LaneMaker::on_port(const PortItem& port) {
  if (theirs_.size() > kMostLanes)
    return absl::InvalidArgumentError(absl::StrCat("the peer listed more than ", kMostLanes + 1, " ports"));
  if (port.is_main != 0) their_main_ = theirs_.size();
  theirs_.emplace_back(PathEnd{.address = port.port == 0 ? sockaddr_storage{} : to_address(port.address),
                               .network_bits = 0,
                               .is_ethernet = port.is_ethernet != 0,
                               .bits_per_second = port.bits_per_second},
                       port.port);
  return absl::OkStatus();
}

absl::Status LaneMaker::on_invitation(const InvitationItem& invitation) {
  invitation_ = invitation;
  const int main = connection_->own_port();
  if (main < 0 || !their_main_.has_value()) return absl::OkStatus();
  const PortTable& ports = transport_->ports();
  std::vector<PathEnd> ours;
  for (size_t i = 0; i < ports.size(); ++i) {
    ours.push_back(ports.path_end(i));
    const bool is_main = static_cast<int>(i) == main;
    if (!is_main && (!ports.is_usable(i) ||
                     ports.is_avoided(static_cast<int>(i), connection_->peer().address, transport_->now()))) {
      ours.back().bits_per_second = 0;
    }
  }
  std::vector<PathEnd> theirs;
  for (const auto& [end, port] : theirs_) theirs.push_back(end);
  const std::vector<Path> paths = pair_ports(ours, static_cast<size_t>(main), theirs, *their_main_, kMostLanes);
  for (uint16_t i = 0; i < paths.size() && paths.size() > 1; ++i) {
    if (paths[i].bits_per_second > 0) dial(i + 1, paths[i]);
  }
  return absl::OkStatus();
}

void LaneMaker::dial(uint16_t number, const Path& path) {
  const int our_port = static_cast<int>(path.ours);
  auto lane = make_lane(number, our_port, path.bits_per_second);
  absl::StatusOr<CmId> id = transport_->connection_manager().make_id(nullptr);
  if (!id.ok()) return log_missing_lane(*lane, id.status());
  lane->set_id(*std::move(id));
  sockaddr_storage target = theirs_[path.theirs].first.address;
  const uint16_t port = htons(theirs_[path.theirs].second);
  if (target.ss_family == AF_INET) {
    reinterpret_cast<sockaddr_in&>(target).sin_port = port;
  } else {
    reinterpret_cast<sockaddr_in6&>(target).sin6_port = port;
  }
  if (rdma_resolve_addr(lane->id(), transport_->ports().address_of(our_port), reinterpret_cast<sockaddr*>(&target),
                        kResolveMilliseconds) != 0) {
    return log_missing_lane(*lane, verbs_error(errno, "there is no RDMA route to the peer's port"));
  }
  dialing_.push_back(std::move(lane));
}

absl::Status LaneMaker::on_dial_event(Lane& lane, const rdma_cm_event& event) {
  switch (event.event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      if (rdma_resolve_route(lane.id(), kResolveMilliseconds) == 0) return absl::OkStatus();
      return verbs_error(errno, "there is no RDMA route to the peer's port");
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      return request(lane);
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
      return establish(lane, event);
    default:
      return absl::UnavailableError(rdma_event_str(event.event));
  }
}

absl::Status LaneMaker::open(Lane& lane) {
  GLN_ASSIGN_OR_RETURN(Adapter * adapter, transport_->adapter_of(lane.id()->verbs));
  GLN_ASSIGN_OR_RETURN(std::shared_ptr<Domain> domain, adapter->domain_of(connection_->peer().job));
  return lane.open(std::move(domain), adapter->channel(), connection_->link());
}

absl::Status LaneMaker::request(Lane& lane) {
  GLN_RETURN_IF_ERROR(open(lane));
  set_ack_timeout(lane.id());
  const LaneGreeting greeting{
      .number = lane.number(), .bits_per_second = lane.bits_per_second(), .secret = invitation_->request};
  rdma_conn_param parameters = parameters_of(lane.pair_number(), &greeting, sizeof(greeting));
  return rdma_connect(lane.id(), &parameters) == 0 ? absl::OkStatus() : verbs_error(errno, "can't request the lane");
}

absl::Status LaneMaker::establish(Lane& lane, const rdma_cm_event& event) {
  LaneGreeting theirs;
  if (event.param.conn.private_data_len < sizeof(theirs))
    return absl::InvalidArgumentError("the answer has no greeting");
  std::memcpy(&theirs, event.param.conn.private_data, sizeof(theirs));
  if (theirs.number != lane.number() || theirs.secret != invitation_->answer) {
    return absl::PermissionDeniedError("the answer does not come from the peer");
  }
  GLN_RETURN_IF_ERROR(lane.make_ready());
  if (rdma_establish(lane.id()) != 0) return verbs_error(errno, "can't establish the lane");
  const auto ours = std::find_if(dialing_.begin(), dialing_.end(), [&](const auto& one) { return one.get() == &lane; });
  connection_->link()->add_lane(std::move(*ours));
  dialing_.erase(ours);
  come_up(lane);
  return absl::OkStatus();
}

// Both sides.

std::unique_ptr<Lane> LaneMaker::make_lane(uint16_t number, int port, uint64_t bits_per_second) {
  return std::make_unique<Lane>([this](Lane& lane, const rdma_cm_event& event) { on_lane_event(lane, event); }, number,
                                port, bits_per_second);
}

void LaneMaker::on_lane_event(Lane& lane, const rdma_cm_event& event) {
  const bool is_dialing =
      std::any_of(dialing_.begin(), dialing_.end(), [&](const auto& one) { return one.get() == &lane; });
  if (is_dialing) {
    const absl::Status status = on_dial_event(lane, event);
    if (status.ok()) return;
    log_missing_lane(lane, status);
    std::erase_if(dialing_, [&](const auto& one) { return one.get() == &lane; });
    return;
  }
  switch (event.event) {
    case RDMA_CM_EVENT_ESTABLISHED:
      return come_up(lane);
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
    case RDMA_CM_EVENT_REJECTED:
      return log_missing_lane(lane, absl::UnavailableError(rdma_event_str(event.event)));
    default:
      return connection_->on_event(event);  // the end of a lane ends its connection
  }
}

void LaneMaker::come_up(const Lane& lane) {
  Link* const link = connection_->link();
  link->open_path(lane.number(), lane.bits_per_second());
  transport_->note_lane();
  transport_->wake_link(link);  // completions may have come before the lane was armed
}

void LaneMaker::log_missing_lane(const Lane& lane, const absl::Status& why) {
  transport_->env().log->warning(
      "a connection over RDMA goes on without one of its lanes", "peer", connection_->peer().address, "lane",
      lane.number(), "device",
      lane.port() < 0 ? "unknown" : transport_->ports()[static_cast<size_t>(lane.port())].to_string(), "reason",
      why.message());
}

}  // namespace gleaner::transport::rdma
