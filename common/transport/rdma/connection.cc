#include "common/transport/rdma/connection.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/transport/rdma/adapter.h"
#include "common/transport/rdma/transport.h"

namespace gleaner::transport::rdma {
namespace {

// The connection manager's reasons for a rejection: IB_CM_REJ_INVALID_SERVICE_ID and IB_CM_REJ_CONSUMER_DEFINED.
constexpr int kNobodyListens = 8;
constexpr int kByTheUser = 28;

}  // namespace

Connection::Connection(Transport* transport, CmId id, std::string address, const wire::ServerHandshake& handshake)
    : stream::Connection(transport, std::move(address), handshake),
      transport_(transport),
      id_(std::move(id)),
      lane_maker_(transport, this) {
  id_->context = static_cast<IdUser*>(this);
}

Connection::Connection(Transport* transport, std::vector<Route> routes, std::string address,
                       const ConnectOptions& options, const wire::Nonce& nonce)
    : stream::Connection(transport, std::move(address), options, nonce),
      transport_(transport),
      lane_maker_(transport, this),
      routes_(std::move(routes)) {
  std::reverse(routes_.begin(), routes_.end());
}

Connection::~Connection() {
  if (link_ != nullptr) transport_->forget_link(link_.get());
  if (!failure_.ok()) transport_->forget_failed(this);
}

Capabilities Connection::capabilities() const {
  return {.in_process = false, .one_sided = true, .checksums_payload = transport_->rdma_options().checksums};
}

absl::Status Connection::connect_next() {
  absl::Status status = absl::UnavailableError(absl::StrCat(peer().address, " has no address"));
  while (!routes_.empty()) {
    tcp::Target target = routes_.back().target;
    port_ = routes_.back().port;
    routes_.pop_back();
    GLN_ASSIGN_OR_RETURN(id_, transport_->connection_manager().make_id(static_cast<IdUser*>(this)));
    sockaddr* const from = port_ < 0 ? nullptr : transport_->ports().address_of(port_);
    if (rdma_resolve_addr(id_.get(), from, reinterpret_cast<sockaddr*>(&target.address), kResolveMilliseconds) == 0) {
      return absl::OkStatus();
    }
    status =
        absl::UnavailableError(absl::StrCat("can't connect to ", peer().address, " over RDMA: ", std::strerror(errno)));
  }
  return status;
}

absl::Status Connection::make_link(uint64_t job, bool is_known) {
  GLN_ASSIGN_OR_RETURN(adapter_, transport_->adapter_of(id_->verbs));
  GLN_ASSIGN_OR_RETURN(std::shared_ptr<Domain> domain,
                       is_known ? adapter_->domain_of(job) : adapter_->make_private_domain());
  GLN_ASSIGN_OR_RETURN(
      link_, Link::create(std::move(domain), adapter_->channel(), this, transport_->rdma_options().checksums));
  link_->connection = this;
  return absl::OkStatus();
}

absl::Status Connection::accept(const Greeting& theirs) {
  const Greeting ours{.ports = transport_->greeted_ports(), .job = theirs.job};
  if (!ours.suits(theirs)) {
    return absl::InvalidArgumentError(absl::StrCat("this side speaks version ", ours.version,
                                                   " of Gleaner's RDMA protocol, and the peer another version"));
  }
  GLN_RETURN_IF_ERROR(make_link(theirs.job, transport_->knows(theirs.job)));
  GLN_RETURN_IF_ERROR(link_->make_ready(id_.get()));
  rdma_conn_param parameters = parameters_of(link_->number(), &ours, sizeof(ours));
  if (rdma_accept(id_.get(), &parameters) != 0) return verbs_error(errno, "can't accept a connection");
  transport_->wake_link(link_.get());
  return absl::OkStatus();
}

void Connection::on_event(const rdma_cm_event& event) {
  if (is_dead()) return;
  if (event.event == RDMA_CM_EVENT_DISCONNECTED || event.event == RDMA_CM_EVENT_TIMEWAIT_EXIT) {
    while (handle_completions()) {
    }  // frames that came before
    return die(closed_by_peer());
  }
  if (event.event == RDMA_CM_EVENT_DEVICE_REMOVAL) {
    return die(
        absl::UnavailableError(absl::StrCat("connection to ", peer().address, " broke: its RDMA device was removed")));
  }
  if (phase() == Phase::kConnecting) {
    absl::Status status = on_dial_event(event);
    if (!status.ok()) status = connect_next_after(std::move(status));
    if (!status.ok()) die(std::move(status));
    return;
  }
  if (event.event == RDMA_CM_EVENT_CONNECT_ERROR || event.event == RDMA_CM_EVENT_UNREACHABLE) {
    die(absl::UnavailableError(absl::StrCat("connection to ", peer().address, " could not be made")));
  }
}

// Starts to connect by the next route. Returns `why` if there is no further route.
absl::Status Connection::connect_next_after(absl::Status why) {
  if (routes_.empty()) return why;
  if (link_ != nullptr) transport_->forget_link(link_.get());
  link_.reset();
  return connect_next();
}

// The peer has answered at this address, and would answer the same from another port.
void Connection::forget_routes_to(const sockaddr* address) {
  std::erase_if(
      routes_, [&](const Route& route) { return std::memcmp(&route.target.address, address, route.target.size) == 0; });
}

absl::Status Connection::on_dial_event(const rdma_cm_event& event) {
  switch (event.event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      if (rdma_resolve_route(id_.get(), kResolveMilliseconds) == 0) return absl::OkStatus();
      return verbs_error(errno, absl::StrCat("can't find an RDMA route to ", peer().address));
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      return request();
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
      return establish(event);
    case RDMA_CM_EVENT_ADDR_ERROR:
      return absl::UnavailableError(absl::StrCat("can't connect to ", peer().address,
                                                 ": no RDMA device has a route there, or no machine answers"));
    case RDMA_CM_EVENT_REJECTED:
      forget_routes_to(rdma_get_peer_addr(id_.get()));
      return refused(event);
    default:
      return absl::UnavailableError(
          absl::StrCat("can't connect to ", peer().address, " over RDMA: ", rdma_event_str(event.event)));
  }
}

absl::Status Connection::request() {
  GLN_RETURN_IF_ERROR(make_link(peer().job, true));
  set_ack_timeout(id_.get());
  const Greeting greeting{.ports = transport_->greeted_ports(), .job = peer().job};
  rdma_conn_param parameters = parameters_of(link_->number(), &greeting, sizeof(greeting));
  if (rdma_connect(id_.get(), &parameters) == 0) return absl::OkStatus();
  return verbs_error(errno, absl::StrCat("can't connect to ", peer().address));
}

absl::Status Connection::establish(const rdma_cm_event& event) {
  Greeting theirs;
  if (event.param.conn.private_data_len < sizeof(theirs))
    return absl::InvalidArgumentError(absl::StrCat(peer().address, " answered without Gleaner's greeting"));
  std::memcpy(&theirs, event.param.conn.private_data, sizeof(theirs));
  const Greeting ours{.ports = transport_->greeted_ports(), .job = peer().job};
  if (!ours.suits(theirs)) {
    return absl::InvalidArgumentError(
        absl::StrCat(peer().address, " speaks another protocol, or another version of Gleaner's RDMA protocol"));
  }
  most_ports_ = std::max(ours.ports, theirs.ports);
  GLN_RETURN_IF_ERROR(link_->make_ready(id_.get()));
  if (rdma_establish(id_.get()) != 0) return verbs_error(errno, absl::StrCat("can't connect to ", peer().address));
  transport_->wake_link(link_.get());
  connected();
  return absl::OkStatus();
}

absl::Status Connection::refused(const rdma_cm_event& event) const {
  const std::string what = absl::StrCat("can't connect to ", peer().address, " over RDMA: ");
  if (event.status == kNobodyListens) return absl::UnavailableError(absl::StrCat(what, "no process listens there"));
  if (event.status == kByTheUser && event.param.conn.private_data_len > 0) {
    const auto* text = static_cast<const char*>(event.param.conn.private_data);
    const size_t size = strnlen(text, event.param.conn.private_data_len);
    return absl::UnavailableError(absl::StrCat(what, wire::reject_message(std::as_bytes(std::span(text, size)))));
  }
  return absl::UnavailableError(absl::StrCat(what, "refused with status ", event.status));
}

void Connection::push(const wire::Header& header, Buffer payload) {
  if (link_ != nullptr) link_->push(header, std::move(payload));
}

// Another thread may call flush() while the transport's own thread waits, so poll() reports an error of write().
absl::Status Connection::write() {
  if (link_ == nullptr || !failure_.ok()) return absl::OkStatus();
  absl::Status status = link_->write();
  if (!status.ok()) {
    failure_ = std::move(status);
    transport_->note_failed(this);
  }
  return absl::OkStatus();
}

void Connection::close_after_write_error() {
  die(absl::Status(failure_.code(), absl::StrCat("connection to ", peer().address, " broke: ", failure_.message())));
}

bool Connection::handle_completions() {
  if (link_ == nullptr || is_dead()) return false;
  Link& link = *link_;
  const absl::StatusOr<bool> more = link.read();
  if (is_dead()) return false;  // the handler of a frame has closed the connection
  if (link.heard()) heard();
  if (!more.ok()) {
    if (absl::IsUnavailable(more.status())) {
      on_broken(more.status());
    } else {
      refuse(more.status());
    }
    return false;
  }
  transport_->mark_dirty(
      this);  // the peer may have returned credits, and this side may have grants and credits to send
  return *more;
}

void Connection::on_broken(const absl::Status& why) {
  const int path = link_->failed_path();
  if (path >= 0) avoid_port_of(static_cast<uint16_t>(path));
  absl::Status status =
      absl::UnavailableError(absl::StrCat("connection to ", peer().address, " broke: ", why.message()));
  if (path <= 0) return die(std::move(status));
  link_->sender().items().push(ItemKind::kLost, static_cast<uint16_t>(path));
  close(std::move(status));
}

void Connection::avoid_port_of(uint16_t path) {
  const std::unique_ptr<Lane>& lane = link_->lanes()[path];
  const int port = path == 0 ? own_port() : lane == nullptr ? -1 : lane->port();
  if (port >= 0 && !peer().accepted) transport_->ports().avoid(port, peer().address, transport_->now());
}

bool Connection::uses(const Adapter& adapter) const {
  if (adapter_ == &adapter) return true;
  if (link_ == nullptr) return false;
  return std::any_of(link_->lanes().begin(), link_->lanes().end(),
                     [&](const auto& lane) { return lane != nullptr && lane->domain().device() == adapter.device(); });
}

int Connection::own_port() const { return transport_->port_of(id_.get()); }

absl::Duration Connection::now() const { return transport_->now(); }

void Connection::read() { handle_completions(); }

void Connection::on_proven() {
  if (peer().job != link_->domain().job()) {
    return refuse(
        absl::PermissionDeniedError("the peer requested the connection for another job than it proved to be in"));
  }
  absl::Status status = link_->trust();
  if (!status.ok()) return die(std::move(status));
  if (!peer().accepted && most_ports_ > 1) {
    link_->sender().items().push(ItemKind::kAsk, 0);
    transport_->mark_dirty(this);
  }
  come_up();
}

void Connection::release_frames() {
  if (link_ == nullptr) return;
  lane_maker_.stop();
  link_->forget_user();
  link_->connection = nullptr;
  transport_->keep(std::move(id_), std::move(link_));
}

}  // namespace gleaner::transport::rdma
