#include "common/transport/rdma/transport.h"

#include <netinet/in.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace gleaner::transport::rdma {
namespace {

constexpr int kBacklog = 256;
constexpr absl::Duration kLinger = absl::Seconds(1);
constexpr absl::Duration kLingerAtEnd = absl::Milliseconds(250);
constexpr size_t kMostRejectText = 140;  // that a rejection carries

std::string text_of(sockaddr* address) {
  sockaddr_storage storage{};
  const size_t size = address->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  std::memcpy(&storage, address, size);
  return tcp::to_address(storage, static_cast<socklen_t>(size))
      .value_or(Address{"a peer of unknown address", 0})
      .to_string();
}

void reject(rdma_cm_id* id, absl::string_view why) {
  const std::string text(why.substr(0, kMostRejectText));
  rdma_reject(id, text.data(), static_cast<uint8_t>(text.size()));
}

absl::Status listen_error(int error, const Address& address) {
  const std::string what = absl::StrCat("can't listen on ", address.to_string(), " over RDMA");
  if (error == EADDRINUSE) {
    return absl::AlreadyExistsError(absl::StrCat(what, ": the port is in use; choose another, or 0 for any free one"));
  }
  if (error == EADDRNOTAVAIL || error == ENODEV) {
    return absl::NotFoundError(
        absl::StrCat(what, ": no RDMA device has this address; give that of one, or 0.0.0.0 for all of them"));
  }
  return verbs_error(error, what);
}

}  // namespace

Transport::Transport(const Env& env, const Options& options, Handler* handler, const wire::JobSecrets* jobs,
                     std::vector<Port> ports, EventChannel events)
    : remote::Transport(env, options.remote, handler, jobs),
      options_(options),
      jobs_(jobs),
      ports_(std::move(ports)),
      allowance_{options.registrations_allowed},
      events_(std::move(events)) {}

Transport::~Transport() {
  drop_connections();
  drain();
}

absl::StatusOr<std::unique_ptr<Transport>> Transport::create(const Env& env, const Options& options, Handler* handler,
                                                             const wire::JobSecrets* jobs) {
  GLN_ASSIGN_OR_RETURN(std::vector<Port> ports, usable_ports(options.devices));
  EventChannel events(rdma_create_event_channel());
  if (events == nullptr) {
    return verbs_error(errno, "the RDMA connection manager can't be reached (is the module rdma_ucm loaded?)");
  }
  GLN_RETURN_IF_ERROR(set_nonblocking(events->fd));
  auto transport =
      std::unique_ptr<Transport>(new Transport(env, options, handler, jobs, std::move(ports), std::move(events)));
  GLN_RETURN_IF_ERROR(transport->open());
  GLN_RETURN_IF_ERROR(transport->watch(EPOLL_CTL_ADD, transport->events_->fd, EPOLLIN, &transport->on_events_));
  return transport;
}

absl::StatusOr<CmId> Transport::make_id(void* context) {
  rdma_cm_id* id = nullptr;
  if (rdma_create_id(events_.get(), &id, context, RDMA_PS_TCP) != 0) {
    return verbs_error(errno, "can't make an RDMA connection");
  }
  return CmId(id);
}

absl::StatusOr<Address> Transport::listen(const Address& address) {
  GLN_ASSIGN_OR_RETURN(std::vector<tcp::Target> targets, tcp::resolve(address));
  absl::Status status;
  for (tcp::Target& target : targets) {
    GLN_ASSIGN_OR_RETURN(CmId id, make_id(nullptr));
    if (rdma_bind_addr(id.get(), reinterpret_cast<sockaddr*>(&target.address)) != 0 ||
        rdma_listen(id.get(), kBacklog) != 0) {
      status = listen_error(errno, address);
      continue;
    }
    GLN_RETURN_IF_ERROR(check_device(id.get()));
    const uint16_t port = ntohs(rdma_get_src_port(id.get()));
    listeners_.push_back(std::move(id));
    return Address{address.host, port};
  }
  return status;
}

// With a choice of the user's, no other device is used.
absl::Status Transport::check_device(const rdma_cm_id* id) const {
  if (options_.devices.empty() || id->verbs == nullptr) return absl::OkStatus();
  const std::string name = ibv_get_device_name(id->verbs->device);
  const auto is_chosen = [&](const Port& port) { return port.device == name; };
  if (std::any_of(ports_.begin(), ports_.end(), is_chosen)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("this address is of RDMA device ", name, ", which was not chosen"));
}

absl::StatusOr<transport::Connection*> Transport::connect(const Address& address, const ConnectOptions& options) {
  GLN_ASSIGN_OR_RETURN(const wire::Nonce nonce, draw_nonce());
  GLN_ASSIGN_OR_RETURN(std::vector<tcp::Target> targets, tcp::resolve(address));
  auto connection = std::make_unique<Connection>(this, std::move(targets), address.to_string(), options, nonce);
  GLN_RETURN_IF_ERROR(connection->connect_next());
  return adopt(std::move(connection));
}

int Transport::choose_port(int family) const {
  if (options_.devices.empty()) return -1;
  int best = -1;
  double least = 0;
  for (size_t i = 0; i < ports_.size(); ++i) {
    if (ports_[i].address.ss_family != family) continue;
    const auto uses = std::count_if(connections().begin(), connections().end(), [i](const auto& connection) {
      return static_cast<const Connection&>(*connection).port() == static_cast<int>(i);
    });
    const double load =
        static_cast<double>(uses + 1) / static_cast<double>(std::max<uint64_t>(1, ports_[i].bits_per_second));
    if (best >= 0 && load >= least) continue;
    best = static_cast<int>(i);
    least = load;
  }
  return best;
}

absl::StatusOr<Adapter*> Transport::adapter_of(ibv_context* device) {
  for (const auto& adapter : adapters_) {
    if (adapter->device() == device && !adapter->is_gone()) return adapter.get();
  }
  GLN_ASSIGN_OR_RETURN(std::unique_ptr<Adapter> adapter, Adapter::create(this, device, &allowance_));
  adapters_.push_back(std::move(adapter));
  return adapters_.back().get();
}

void Transport::Events::on_events(uint32_t /*events*/) {
  rdma_cm_event* event = nullptr;
  while (rdma_get_cm_event(transport_->events_.get(), &event) == 0) {
    // Its id can't be destroyed while it is not acknowledged, and what it points to goes with that.
    rdma_cm_event copy = *event;
    std::array<std::byte, 256> data{};
    const bool has_data = event->event == RDMA_CM_EVENT_CONNECT_REQUEST ||
                          event->event == RDMA_CM_EVENT_CONNECT_RESPONSE || event->event == RDMA_CM_EVENT_REJECTED;
    if (has_data && event->param.conn.private_data != nullptr) {
      std::memcpy(data.data(), event->param.conn.private_data, event->param.conn.private_data_len);
      copy.param.conn.private_data = data.data();
    } else if (has_data) {
      copy.param.conn.private_data_len = 0;
    }
    rdma_ack_cm_event(event);
    transport_->on_event(copy);
  }
}

void Transport::on_event(const rdma_cm_event& event) {
  if (event.event == RDMA_CM_EVENT_CONNECT_REQUEST) return on_request(event);
  if (event.id->context != nullptr) static_cast<Connection*>(event.id->context)->on_event(event);
  const bool is_listener =
      std::any_of(listeners_.begin(), listeners_.end(), [&](const CmId& id) { return id.get() == event.id; });
  if (is_listener && event.event == RDMA_CM_EVENT_DEVICE_REMOVAL) {
    env().log->warning("the RDMA device that was listened on was taken away; nobody can connect over it any more");
    std::erase_if(listeners_, [&](const CmId& id) { return id.get() == event.id; });
  }
}

void Transport::on_request(const rdma_cm_event& event) {
  CmId id(event.id);
  id->context = nullptr;
  Greeting greeting;
  absl::Status status = check_device(id.get());
  if (status.ok() && event.param.conn.private_data_len < sizeof(greeting)) {
    status = absl::InvalidArgumentError("another protocol");
  }
  if (!status.ok()) return reject(id.get(), status.message());
  std::memcpy(&greeting, event.param.conn.private_data, sizeof(greeting));
  const std::optional<wire::ServerHandshake> handshake = greet();
  if (!handshake.has_value()) return reject(id.get(), "it has no random numbers");
  std::string address = text_of(rdma_get_peer_addr(id.get()));
  rdma_cm_id* const asked = id.get();
  auto connection = std::make_unique<Connection>(this, std::move(id), std::move(address), *handshake);
  status = connection->accept(greeting);
  if (status.ok()) {
    adopt(std::move(connection));
    return;
  }
  env().log->warning("can't accept a connection over RDMA", "peer", connection->peer().address, "reason",
                     status.message());
  reject(asked, status.message());
}

void Transport::wake_link(Link* link) {
  if (!std::exchange(link->awake, true)) awake_.push_back(link);
}

void Transport::forget_link(Link* link) {
  if (link->awake) std::erase(awake_, link);
}

void Transport::keep(CmId id, std::unique_ptr<Link> link) {
  if (id != nullptr) id->context = nullptr;
  if (!link->holds_no_buffers()) link->end();
  wake_link(link.get());
  lingering_.push_back({std::move(id), std::move(link), now() + kLinger});
}

void Transport::take(Link* link) {
  if (link->connection != nullptr) {
    link->connection->take();
  } else if (!link->read().ok()) {
    link->end();
  }
}

void Transport::take_turn() {
  for (size_t i = 0; i < failed_.size(); ++i) failed_[i]->give_up();
  failed_.clear();
  bool came = false;
  for (size_t i = 0; i < awake_.size(); ++i) {
    take(awake_[i]);
    came = awake_[i]->was_busy() || came;
  }
  bury_lingering();
  if (options_.busy_poll > absl::ZeroDuration()) {
    if (came) last_came_ = now();
    if (now() < last_came_ + options_.busy_poll) return;
  }
  for (size_t i = awake_.size(); i > 0; --i) let_sleep(i - 1);
}

// Unless something has come meanwhile: what comes after arm() is told.
void Transport::let_sleep(size_t index) {
  Link* const link = awake_[index];
  if (!link->has_ended() && (link->peek() || !link->arm().ok() || link->peek())) return;
  link->awake = false;
  awake_[index] = awake_.back();
  awake_.pop_back();
}

absl::Duration Transport::before_wait(absl::Duration timeout) {
  if (awake_.empty()) return timeout;
  if (options_.busy_poll > absl::ZeroDuration()) spin(now() + timeout);
  return absl::ZeroDuration();
}

// Looks for completions until some are there, or something else has happened, or it is time.
bool Transport::spin(absl::Duration until) {
  until = std::min(until, last_came_ + options_.busy_poll);
  for (int round = 0;; ++round) {
    for (Link* link : awake_) {
      if (!link->peek()) continue;
      last_came_ = now();
      return true;
    }
    if (round % 16 != 0) continue;
    epoll_event event;
    if (epoll_wait(descriptor(), &event, 1, 0) != 0 || now() >= until) return false;
  }
}

void Transport::bury_lingering() {
  for (size_t i = lingering_.size(); i > 0; --i) {
    Lingering& one = lingering_[i - 1];
    if (!one.link->has_ended() && !one.link->is_quiet() && now() < one.until) continue;
    if (one.id != nullptr) rdma_disconnect(one.id.get());
    one.link->end();
    forget_link(one.link.get());
    lingering_.erase(lingering_.begin() + static_cast<ptrdiff_t>(i - 1));
  }
}

void Transport::on_tick() {
  bury_lingering();
  for (const auto& adapter : adapters_) adapter->forget_jobs([this](uint64_t job) { return knows(job); });
}

void Transport::on_adapter_gone(Adapter* adapter) {
  for (const auto& connection : connections()) {
    auto& ours = static_cast<Connection&>(*connection);
    if (ours.adapter() == adapter)
      ours.close(absl::UnavailableError(
          absl::StrCat("connection to ", ours.peer().address, " broke: its RDMA device was taken away")));
  }
}

// What was closed reaches its peer, if that takes no longer than it may.
void Transport::drain() {
  const absl::Duration until = now() + kLingerAtEnd;
  while (!lingering_.empty() && now() < until) {
    for (const Lingering& one : lingering_) take(one.link.get());
    bury_lingering();
  }
  lingering_.clear();
}

Counters Transport::counters() const {
  Counters sum;
  for (const auto& adapter : adapters_) adapter->add_to(sum.registrations, sum.copies);
  return sum;
}

}  // namespace gleaner::transport::rdma
