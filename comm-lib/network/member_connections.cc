#include "comm-lib/network/member_connections.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/median.h"
#include "common/base/message_overhead.h"
#include "common/base/status_macros.h"

namespace gleaner::network {
namespace {

// These times detect the loss of a CPU summer within a second. The loss of another worker is detected within the job's
// deadline.
constexpr transport::KeepAlive kSummerKeepAlive{absl::Milliseconds(200), absl::Milliseconds(850)};

// PINGs to a member for a measurement: the answer time is their lower quartile, so two answers may be much faster.
constexpr uint32_t kPings = 8;
// Members measured at first: enough for a median, however many there are.
constexpr uint32_t kFirstMembers = 8;

// Fewer bytes, such as confirmations alone, tell nothing about the rate of a link.
constexpr uint64_t kLeastBytes = 64 << 10;
// The kernel counts busy time in ticks of up to 10 ms.
constexpr absl::Duration kLeastBusy = absl::Milliseconds(100);

transport::KeepAlive keep_alive_of(absl::Duration deadline) {
  return {std::min(transport::KeepAlive().ping_after, deadline / 10), deadline};
}

}  // namespace

absl::Status MemberConnections::open(transport::inproc::Hub* hub, transport::Handler* handler,
                                     const wire::JobSecrets* secrets) {
  to_own_ = std::make_unique<transport::inproc::Transport>(hub, handler);
  GLN_ASSIGN_OR_RETURN(transport_, transport::make_transport(env_, options_.transports, handler, secrets));
  GLN_ASSIGN_OR_RETURN(address_, transport_->listen(options_.listen));
  if (!options_.advertise.empty()) address_.host = options_.advertise;
  return absl::OkStatus();
}

std::vector<std::string> MemberConnections::endpoints() const {
  return to_texts(transport_->endpoints(options_.advertise));
}

void MemberConnections::follow(std::shared_ptr<const plan::Plan> plan) {
  plan_ = std::move(plan);
  for (auto member = static_cast<uint32_t>(peers_.size()); member < plan_->members.size(); ++member) {
    peers_.push_back({.member = member});
  }
  for (Peer& peer : peers_) peer.bits_per_second = 0;  // its masters may send to other members
}

absl::Status MemberConnections::dial(uint32_t member) {
  Peer& peer = peers_[member];
  GLN_ASSIGN_OR_RETURN(peer.connection, connect(peer));
  return absl::OkStatus();
}

absl::StatusOr<transport::Connection*> MemberConnections::connect(Peer& peer) {
  transport::ConnectOptions options{options_.job, welcome_.member, welcome_.secret};
  options.context = &peer;
  if (peer.member == welcome_.member) return to_own_->connect(address_, options);
  options.keep_alive = peer.member >= plan_->workers ? kSummerKeepAlive : keep_alive_of(welcome_.deadline);
  const plan::Member& member = plan_->members[peer.member];
  std::vector<transport::Endpoint> endpoints = transport::parse_endpoints(member.endpoints);
  if (member.endpoints.empty()) {
    GLN_ASSIGN_OR_RETURN(Address address, Address::parse(member.address));
    endpoints.push_back({transport::Kind::kTcp, "", std::move(address)});
  }
  return transport_->connect(absl::StrCat(plan_->member_name(peer.member), " at ", member.address), endpoints, options);
}

void MemberConnections::drop(uint32_t member) {
  Peer& peer = peers_[member];
  peer.up = false;
  transport::Connection* const connection = std::exchange(peer.connection, nullptr);
  if (connection != nullptr) connection->close(absl::OkStatus());
}

void MemberConnections::close_all(const absl::Status& status) {
  for (const Peer& peer : peers_) {
    if (peer.connection != nullptr) peer.connection->close(status);
  }
}

// Returns null for a connection to an earlier member in the same place.
MemberConnections::Peer* MemberConnections::current(const transport::Connection& connection) {
  auto* const peer = static_cast<Peer*>(connection.context);
  return peer->connection == &connection ? peer : nullptr;
}

std::optional<uint32_t> MemberConnections::member_of(const transport::Connection& connection) const {
  const Peer* const peer = current(connection);
  return peer == nullptr ? std::nullopt : std::optional(peer->member);
}

std::optional<uint32_t> MemberConnections::on_connected(const transport::Connection& connection) {
  Peer* const peer = current(connection);
  if (peer == nullptr) return std::nullopt;
  peer->up = true;
  peer->overhead = absl::ZeroDuration();
  peer->sent.reset();
  return peer->member;
}

std::optional<MemberConnections::Closed> MemberConnections::on_closed(const transport::Connection& connection) {
  Peer* const peer = current(connection);
  if (peer == nullptr) return std::nullopt;
  peer->connection = nullptr;
  return Closed{peer->member, std::exchange(peer->up, false)};
}

void MemberConnections::send(uint32_t member, const wire::Header& header, Buffer payload) {
  const Peer& peer = peers_[member];
  if (peer.up) peer.connection->send(header, std::move(payload));
}

void MemberConnections::measure_rates() {
  for (Peer& peer : peers_) {
    const std::optional<transport::Sent> now = peer.up ? peer.connection->sent() : std::nullopt;
    if (!now.has_value() || !peer.sent.has_value()) {
      peer.sent = now;
      continue;
    }
    const uint64_t bytes = now->bytes - peer.sent->bytes;
    const absl::Duration busy = now->busy - peer.sent->busy;
    if (bytes < kLeastBytes || busy < kLeastBusy) continue;
    peer.bits_per_second = static_cast<double>(bytes) * 8 / absl::ToDoubleSeconds(busy);
    peer.sent = now;
  }
}

double MemberConnections::link_bits_per_second() const {
  double sum = 0;
  for (const Peer& peer : peers_) sum += peer.bits_per_second;
  return sum;
}

absl::Duration MemberConnections::measure_round_trip() {
  round_trip_ = absl::ZeroDuration();
  for (const Peer& peer : peers_) {
    if (peer.up) round_trip_ = std::max(round_trip_, peer.connection->round_trip());
  }
  return round_trip_;
}

void MemberConnections::measure_overhead() {
  const auto measurable = static_cast<uint32_t>(std::ranges::count_if(peers_, is_measurable));
  left_to_ping_ = std::min(measurable, has_measured_ ? 1 : kFirstMembers);
  ping_next();
}

// Members are measured one after the other, so that their PONGs do not wait for each other. A PONG that is missing when
// the next measurement begins does not come any more. Without a known round trip the answer time does not show the
// overhead.
void MemberConnections::ping_next() {
  if (pinged_.has_value()) note_overhead(peers_[*pinged_]);
  pinged_.reset();
  for (size_t tried = 0; left_to_ping_ > 0 && tried < peers_.size(); ++tried) {
    last_pinged_ = (last_pinged_ + 1) % static_cast<uint32_t>(peers_.size());
    const Peer& peer = peers_[last_pinged_];
    if (!is_measurable(peer)) continue;
    --left_to_ping_;
    pinged_ = last_pinged_;
    return peer.connection->ping(kPings);
  }
  has_measured_ = overhead_ > absl::ZeroDuration();
}

void MemberConnections::note_overhead(Peer& peer) {
  if (!peer.up || peer.connection->answer_time() == absl::ZeroDuration()) return;
  peer.overhead = message_overhead(peer.connection->answer_time(), peer.connection->round_trip());
  std::vector<absl::Duration> known;
  for (const Peer& each : peers_) {
    if (each.up && each.overhead > absl::ZeroDuration()) known.push_back(each.overhead);
  }
  overhead_ = upper_median(std::move(known));
}

std::string MemberConnections::describe_transports() const {
  constexpr size_t kMost = 8;
  std::array<std::vector<std::string>, transport::kKinds> by_kind;
  for (const Peer& peer : peers_) {
    if (peer.up) by_kind[static_cast<size_t>(peer.connection->kind())].push_back(plan_->member_name(peer.member));
  }
  std::vector<std::string> parts;
  for (size_t kind = 0; kind < by_kind.size(); ++kind) {
    std::vector<std::string>& names = by_kind[kind];
    if (names.empty()) continue;
    const size_t more = names.size() - std::min(names.size(), kMost);
    names.resize(names.size() - more);
    parts.push_back(absl::StrCat(transport::name_of(static_cast<transport::Kind>(kind)), ": ",
                                 absl::StrJoin(names, ", "), more > 0 ? absl::StrCat(" and ", more, " more") : ""));
  }
  return absl::StrJoin(parts, "; ");
}

transport::any::Counters MemberConnections::counters() const {
  transport::any::Counters counters = transport_->counters();
  for (const Peer& peer : peers_) {
    if (peer.up && peer.member == welcome_.member) {
      ++counters.connections[static_cast<size_t>(transport::Kind::kInproc)];
    }
  }
  return counters;
}

}  // namespace gleaner::network
