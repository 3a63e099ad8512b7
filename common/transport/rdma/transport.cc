#include "common/transport/rdma/transport.h"

#include <netinet/in.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/transport/rdma/nearness.h"

namespace gleaner::transport::rdma {
namespace {

constexpr int kBacklog = 256;
constexpr absl::Duration kLinger = absl::Seconds(1);
constexpr absl::Duration kLingerAtEnd = absl::Milliseconds(250);
constexpr size_t kMostRejectText = 140;  // bytes of private data in a rejection

std::string text_of(sockaddr* address) {
  sockaddr_storage storage{};
  const size_t size = address->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  std::memcpy(&storage, address, size);
  return tcp::to_address(storage, static_cast<socklen_t>(size))
      .value_or(Address{"a peer of unknown address", 0})
      .to_string();
}

// Returns the table of the ports, with the cost of a transfer to each from the memory that is sent.
PortTable table_of(std::vector<Port> ports, const Options& options) {
  const Nodes nodes = Nodes::read();
  std::vector<int> port_nodes;
  port_nodes.reserve(ports.size());
  for (const Port& port : ports) port_nodes.push_back(port.numa_node);
  const std::vector<int> near = options.near_node >= 0 ? std::vector<int>{options.near_node} : nodes.with(own_cores());
  std::vector<double> costs = costs_of(port_nodes, near, nodes);
  return PortTable(std::move(ports), std::move(costs), !options.devices.empty(), is_active);
}

absl::Status listen_error(int error, const Address& address) {
  const std::string what = absl::StrCat("can't listen on ", address.to_string(), " over RDMA");
  if (error == EADDRINUSE) {
    return absl::AlreadyExistsError(absl::StrCat(what, ": the port is in use; choose another, or 0 for any free one"));
  }
  if (error == EADDRNOTAVAIL || error == ENODEV) {
    return absl::NotFoundError(absl::StrCat(
        what, ": no RDMA device has this address; give the address of a device, or 0.0.0.0 for all of them"));
  }
  return verbs_error(error, what);
}

}  // namespace

Transport::Transport(const Env& env, const Options& options, Handler* handler, const wire::JobSecrets* jobs,
                     std::vector<Port> ports, EventChannel channel)
    : stream::Transport(env, options.stream, handler, jobs),
      options_(options),
      jobs_(jobs),
      ports_(table_of(std::move(ports), options)),
      ledger_{.registrations_left = options.registrations_allowed, .counters = {}},
      connection_manager_(std::move(channel), [this](const rdma_cm_event& event) { on_event(event); }),
      lane_listeners_(ports_.size()) {}

Transport::~Transport() {
  drop_connections();
  drain();
}

absl::StatusOr<std::unique_ptr<Transport>> Transport::create(const Env& env, const Options& options, Handler* handler,
                                                             const wire::JobSecrets* jobs) {
  GLN_RETURN_IF_ERROR(prepare_for_fork());
  GLN_ASSIGN_OR_RETURN(std::vector<Port> ports, usable_ports(options.devices));
  GLN_ASSIGN_OR_RETURN(EventChannel channel, ConnectionManager::open_channel());
  auto transport =
      std::unique_ptr<Transport>(new Transport(env, options, handler, jobs, std::move(ports), std::move(channel)));
  GLN_RETURN_IF_ERROR(transport->open());
  ConnectionManager& manager = transport->connection_manager_;
  GLN_RETURN_IF_ERROR(transport->watch(EPOLL_CTL_ADD, manager.descriptor(), EPOLLIN, &manager));
  return transport;
}

absl::StatusOr<Address> Transport::listen(const Address& address) {
  GLN_ASSIGN_OR_RETURN(std::vector<tcp::Target> targets, tcp::resolve(address));
  absl::Status status;
  for (tcp::Target& target : targets) {
    GLN_ASSIGN_OR_RETURN(CmId id, connection_manager_.make_id(nullptr));
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

absl::Status Transport::check_device(const rdma_cm_id* id) const {
  if (id->verbs == nullptr) return absl::OkStatus();
  const absl::string_view name = ibv_get_device_name(id->verbs->device);
  if (ports_.allows(name)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("this address is of RDMA device ", name, ", which was not chosen"));
}

absl::StatusOr<transport::Connection*> Transport::connect(const Address& address, const ConnectOptions& options) {
  GLN_ASSIGN_OR_RETURN(const wire::Nonce nonce, draw_nonce());
  GLN_ASSIGN_OR_RETURN(std::vector<tcp::Target> targets, tcp::resolve(address));
  const std::vector<size_t> connections = connections_by_port();
  std::vector<Connection::Route> routes;
  for (const tcp::Target& target : targets) {
    for (const int port : ports_.ports_to(target.address, address.to_string(), connections, now())) {
      routes.push_back({target, port});
    }
  }
  auto connection = std::make_unique<Connection>(this, std::move(routes), address.to_string(), options, nonce);
  GLN_RETURN_IF_ERROR(connection->connect_next());
  return adopt(std::move(connection));
}

int Transport::port_of(const rdma_cm_id* id) const {
  if (id == nullptr || id->verbs == nullptr) return -1;
  return ports_.find(ibv_get_device_name(id->verbs->device), id->port_num);
}

std::vector<size_t> Transport::connections_by_port() const {
  std::vector<size_t> counts(ports_.size());
  for (const auto& connection : connections()) {
    const int port = static_cast<const Connection&>(*connection).port();
    if (port >= 0) ++counts[static_cast<size_t>(port)];
  }
  return counts;
}

uint16_t Transport::listen_for_lanes(size_t port) {
  CmId& listener = lane_listeners_[port];
  if (listener == nullptr) {
    absl::StatusOr<CmId> id = connection_manager_.make_id(nullptr);
    if (!id.ok() || rdma_bind_addr(id->get(), ports_.address_of(static_cast<int>(port))) != 0 ||
        rdma_listen(id->get(), kBacklog) != 0) {
      return 0;
    }
    listener = *std::move(id);
  }
  return ntohs(rdma_get_src_port(listener.get()));
}

void Transport::reject(rdma_cm_id* id, absl::string_view why) {
  const std::string text(why.substr(0, kMostRejectText));
  rdma_reject(id, text.data(), static_cast<uint8_t>(text.size()));
}

absl::StatusOr<Adapter*> Transport::adapter_of(ibv_context* device) {
  for (const auto& adapter : adapters_) {
    if (adapter->device() == device && !adapter->is_gone()) return adapter.get();
  }
  GLN_ASSIGN_OR_RETURN(std::unique_ptr<Adapter> adapter, Adapter::create(this, device, &ledger_));
  adapters_.push_back(std::move(adapter));
  return adapters_.back().get();
}

void Transport::on_event(const rdma_cm_event& event) {
  const auto is_event_of = [&](const CmId& id) { return id.get() == event.id; };
  if (event.event == RDMA_CM_EVENT_CONNECT_REQUEST) {
    const bool is_lane = std::any_of(lane_listeners_.begin(), lane_listeners_.end(),
                                     [&](const CmId& id) { return id.get() == event.listen_id; });
    return is_lane ? on_lane_request(event) : on_request(event);
  }
  if (event.id->context != nullptr) static_cast<IdUser*>(event.id->context)->on_event(event);
  if (event.event != RDMA_CM_EVENT_DEVICE_REMOVAL) return;
  const auto lane_listener = std::find_if(lane_listeners_.begin(), lane_listeners_.end(), is_event_of);
  if (lane_listener != lane_listeners_.end()) lane_listener->reset();
  if (std::any_of(listeners_.begin(), listeners_.end(), is_event_of)) {
    env().log->warning("the RDMA device of the listening address was removed; peers can't connect by it any more");
    std::erase_if(listeners_, is_event_of);
  }
}

// No lane is made for a peer that does not know the first number of a connection's invitation.
void Transport::on_lane_request(const rdma_cm_event& event) {
  CmId id(event.id);
  id->context = nullptr;
  LaneGreeting greeting;
  const LaneGreeting expected;
  if (event.param.conn.private_data_len >= sizeof(greeting)) {
    std::memcpy(&greeting, event.param.conn.private_data, sizeof(greeting));
  }
  for (const auto& connection : connections()) {
    auto& ours = static_cast<Connection&>(*connection);
    if (event.param.conn.private_data_len < sizeof(greeting) || greeting.magic != expected.magic ||
        greeting.version != expected.version || !ours.lane_maker().expects(greeting)) {
      continue;
    }
    return ours.lane_maker().accept(std::move(id), greeting);
  }
  reject(id.get(), "no connection expects this lane");
}

void Transport::on_request(const rdma_cm_event& event) {
  CmId id(event.id);
  id->context = nullptr;
  Greeting greeting;
  absl::Status status = check_device(id.get());
  if (status.ok() && event.param.conn.private_data_len < sizeof(greeting)) {
    status = absl::InvalidArgumentError("the request has no greeting of Gleaner: the peer speaks another protocol");
  }
  if (!status.ok()) return reject(id.get(), status.message());
  std::memcpy(&greeting, event.param.conn.private_data, sizeof(greeting));
  const std::optional<wire::ServerHandshake> handshake = greet();
  if (!handshake.has_value()) return reject(id.get(), "this side can't draw random numbers");
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

void Transport::handle_completions(Link* link) {
  if (link->connection != nullptr) {
    link->connection->handle_completions();
  } else if (!link->read().ok()) {
    link->end();
  }
}

void Transport::take_turn() {
  for (size_t i = 0; i < failed_.size(); ++i) failed_[i]->close_after_write_error();
  failed_.clear();
  bool came = false;
  for (size_t i = 0; i < awake_.size(); ++i) {
    handle_completions(awake_[i]);
    came = awake_[i]->was_busy() || came;
  }
  end_lingering();
  if (options_.busy_poll > absl::ZeroDuration()) {
    if (came) last_came_ = now();
    if (now() < last_came_ + options_.busy_poll) return;
  }
  for (size_t i = awake_.size(); i > 0; --i) let_sleep(i - 1);
}

// Stops polling the link's completion queues, unless they have completions: arm() reports only later ones.
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

// Looks for completions until there is one, epoll has an event, or `until` or busy_poll is over. Returns whether there
// is a completion.
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

void Transport::end_lingering() {
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
  end_lingering();
  for (const auto& adapter : adapters_) adapter->forget_jobs([this](uint64_t job) { return knows(job); });
}

void Transport::on_adapter_gone(Adapter* adapter) {
  for (const auto& connection : connections()) {
    auto& ours = static_cast<Connection&>(*connection);
    if (ours.uses(*adapter))
      ours.close(absl::UnavailableError(
          absl::StrCat("connection to ", ours.peer().address, " broke: its RDMA device was removed")));
  }
}

// Gives frames of closed connections at most kLingerAtEnd to reach their peers.
void Transport::drain() {
  const absl::Duration until = now() + kLingerAtEnd;
  while (!lingering_.empty() && now() < until) {
    for (const Lingering& one : lingering_) handle_completions(one.link.get());
    end_lingering();
  }
  lingering_.clear();
}

}  // namespace gleaner::transport::rdma
