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

// In the connection manager's terms, why it refused.
constexpr int kNobodyListens = 8;
constexpr int kByTheUser = 28;

}  // namespace

Connection::Connection(Transport* transport, CmId id, std::string address, const wire::ServerHandshake& handshake)
    : remote::Connection(transport, std::move(address), handshake),
      transport_(transport),
      id_(std::move(id)),
      lane_maker_(transport, this) {
  id_->context = static_cast<IdUser*>(this);
}

Connection::Connection(Transport* transport, std::vector<Way> ways, std::string address, const ConnectOptions& options,
                       const wire::Nonce& nonce)
    : remote::Connection(transport, std::move(address), options, nonce),
      transport_(transport),
      lane_maker_(transport, this),
      ways_(std::move(ways)) {
  std::reverse(ways_.begin(), ways_.end());
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
  while (!ways_.empty()) {
    tcp::Target target = ways_.back().target;
    port_ = ways_.back().port;
    ways_.pop_back();
    GLN_ASSIGN_OR_RETURN(id_, transport_->make_id(static_cast<IdUser*>(this)));
    sockaddr* const from = port_ < 0 ? nullptr : transport_->address_of(port_);
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
                       is_known ? adapter_->domain_of(job) : adapter_->nobodys_domain());
  GLN_ASSIGN_OR_RETURN(
      link_, Link::create(std::move(domain), adapter_->channel(), this, transport_->rdma_options().checksums));
  link_->connection = this;
  return absl::OkStatus();
}

absl::Status Connection::accept(const Greeting& theirs) {
  const Greeting ours{.ports = transport_->greeted_ports(), .job = theirs.job};
  if (!ours.suits(theirs)) {
    return absl::InvalidArgumentError(absl::StrCat("this side speaks version ", ours.version,
                                                   " of Gleaner's protocol over RDMA, and the peer another"));
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
    while (take()) {
    }  // what came before
    return die(closed_by_peer());
  }
  if (event.event == RDMA_CM_EVENT_DEVICE_REMOVAL) {
    return die(absl::UnavailableError(
        absl::StrCat("connection to ", peer().address, " broke: its RDMA device was taken away")));
  }
  if (phase() == Phase::kConnecting) {
    absl::Status status = on_dial_event(event);
    if (!status.ok()) status = next_after(std::move(status));
    if (!status.ok()) die(std::move(status));
    return;
  }
  if (event.event == RDMA_CM_EVENT_CONNECT_ERROR || event.event == RDMA_CM_EVENT_UNREACHABLE) {
    die(absl::UnavailableError(absl::StrCat("connection to ", peer().address, " could not be made")));
  }
}

// By the next way; without one, `why`.
absl::Status Connection::next_after(absl::Status why) {
  if (ways_.empty()) return why;
  if (link_ != nullptr) transport_->forget_link(link_.get());
  link_.reset();
  return connect_next();
}

// It has answered, and would not answer otherwise by another way.
void Connection::forget_ways_to(const sockaddr* address) {
  std::erase_if(ways_, [&](const Way& way) { return std::memcmp(&way.target.address, address, way.target.size) == 0; });
}

absl::Status Connection::on_dial_event(const rdma_cm_event& event) {
  switch (event.event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      if (rdma_resolve_route(id_.get(), kResolveMilliseconds) == 0) return absl::OkStatus();
      return verbs_error(errno, absl::StrCat("can't find the way to ", peer().address));
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      return ask();
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
      return establish(event);
    case RDMA_CM_EVENT_ADDR_ERROR:
      return absl::UnavailableError(
          absl::StrCat("can't connect to ", peer().address, ": no RDMA device leads there, or nobody answers"));
    case RDMA_CM_EVENT_REJECTED:
      forget_ways_to(rdma_get_peer_addr(id_.get()));
      return refused(event);
    default:
      return absl::UnavailableError(
          absl::StrCat("can't connect to ", peer().address, " over RDMA: ", rdma_event_str(event.event)));
  }
}

absl::Status Connection::ask() {
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
    return absl::InvalidArgumentError("a peer without a greeting");
  std::memcpy(&theirs, event.param.conn.private_data, sizeof(theirs));
  const Greeting ours{.ports = transport_->greeted_ports(), .job = peer().job};
  if (!ours.suits(theirs)) {
    return absl::InvalidArgumentError(absl::StrCat(peer().address, " greets as another protocol or version does"));
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
  if (event.status == kNobodyListens) return absl::UnavailableError(absl::StrCat(what, "nobody listens there"));
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

// It may be another thread that flushes, while ours waits: what goes wrong is dealt with in ours.
absl::Status Connection::write() {
  if (link_ == nullptr || !failure_.ok()) return absl::OkStatus();
  absl::Status status = link_->write();
  if (!status.ok()) {
    failure_ = std::move(status);
    transport_->note_failed(this);
  }
  return absl::OkStatus();
}

void Connection::give_up() {
  die(absl::Status(failure_.code(), absl::StrCat("connection to ", peer().address, " broke: ", failure_.message())));
}

bool Connection::take() {
  if (link_ == nullptr || is_dead()) return false;
  Link& link = *link_;
  const absl::StatusOr<bool> more = link.read();
  if (is_dead()) return false;  // closed by what came
  if (link.heard()) heard();
  if (!more.ok()) {
    if (absl::IsUnavailable(more.status())) {
      on_broken(more.status());
    } else {
      refuse(more.status());
    }
    return false;
  }
  transport_->mark_dirty(this);  // there may be room, grants or slots to tell of now
  return *more;
}

void Connection::on_broken(const absl::Status& why) {
  const int path = link_->failed_path();
  if (path >= 0) avoid_port_of(static_cast<uint16_t>(path));
  absl::Status status =
      absl::UnavailableError(absl::StrCat("connection to ", peer().address, " broke: ", why.message()));
  if (path <= 0) return die(std::move(status));
  link_->sender().tell(ItemKind::kLost, static_cast<uint16_t>(path));
  close(std::move(status));
}

void Connection::avoid_port_of(uint16_t path) {
  const std::unique_ptr<Lane>& lane = link_->lanes()[path];
  const int port = path == 0 ? own_port() : lane == nullptr ? -1 : lane->port();
  if (port >= 0 && !peer().accepted) transport_->avoid(port, peer().address);
}

bool Connection::uses(const Adapter& adapter) const {
  if (adapter_ == &adapter) return true;
  if (link_ == nullptr) return false;
  return std::any_of(link_->lanes().begin(), link_->lanes().end(),
                     [&](const auto& lane) { return lane != nullptr && lane->domain().device() == adapter.device(); });
}

int Connection::own_port() const { return transport_->port_of(id_.get()); }

absl::Duration Connection::now() const { return transport_->now(); }

void Connection::read() { take(); }

void Connection::on_proven() {
  if (peer().job != link_->domain().job()) {
    return refuse(absl::PermissionDeniedError("it asked for the connection as a member of another job"));
  }
  absl::Status status = link_->trust();
  if (!status.ok()) return die(std::move(status));
  if (!peer().accepted && most_ports_ > 1) {
    link_->sender().tell(ItemKind::kAsk, 0);
    transport_->mark_dirty(this);
  }
  come_up();
}

void Connection::let_go() {
  if (link_ == nullptr) return;
  lane_maker_.stop();
  link_->forget_user();
  link_->connection = nullptr;
  transport_->keep(std::move(id_), std::move(link_));
}

}  // namespace gleaner::transport::rdma
