#include "common/transport/rdma/transport.h"

#include <netinet/in.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/transport/rdma/nearness.h"

namespace gleaner::transport::rdma {
namespace {

constexpr int kBacklog = 256;
constexpr absl::Duration kLinger = absl::Seconds(1);
constexpr absl::Duration kLingerAtEnd = absl::Milliseconds(250);
constexpr absl::Duration kAvoidFor = absl::Minutes(1);
constexpr size_t kMostRejectText = 140;  // that a rejection carries

std::string text_of(sockaddr* address) {
  sockaddr_storage storage{};
  const size_t size = address->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  std::memcpy(&storage, address, size);
  return tcp::to_address(storage, static_cast<socklen_t>(size))
      .value_or(Address{"a peer of unknown address", 0})
      .to_string();
}

std::vector<int> nodes_near(int near_node, const Nodes& nodes) {
  if (near_node >= 0) return {near_node};
  return nodes.with(own_cores());
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
      ledger_{.registrations_left = options.registrations_allowed, .counters = {}},
      events_(std::move(events)),
      lane_listeners_(ports_.size()) {
  const Nodes nodes = Nodes::read();
  std::vector<int> port_nodes;
  std::vector<uint64_t> rates;
  for (const Port& port : ports_) {
    port_nodes.push_back(port.numa_node);
    rates.push_back(std::max<uint64_t>(1, port.bits_per_second));
  }
  costs_ = costs_of(port_nodes, nodes_near(options.near_node, nodes), nodes);
  // Whoever names devices wants them used.
  worth_ = worth_of(rates, costs_, options.devices.empty());
}

Transport::~Transport() {
  drop_connections();
  drain();
}

absl::StatusOr<std::unique_ptr<Transport>> Transport::create(const Env& env, const Options& options, Handler* handler,
                                                             const wire::JobSecrets* jobs) {
  GLN_RETURN_IF_ERROR(prepare_for_fork());
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
  std::vector<Connection::Way> ways;
  for (const tcp::Target& target : targets) {
    for (const int port : ports_to(target.address, address.to_string())) ways.push_back({target, port});
  }
  auto connection = std::make_unique<Connection>(this, std::move(ways), address.to_string(), options, nonce);
  GLN_RETURN_IF_ERROR(connection->connect_next());
  return adopt(std::move(connection));
}

PathEnd Transport::path_end(size_t port) const {
  const Port& one = ports_[port];
  return {one.address, one.network_bits, one.is_ethernet, worth_[port]};
}

// Of the connections that were made from it, by its bandwidth.
double Transport::load_of(size_t port) const {
  const auto uses = std::count_if(connections().begin(), connections().end(), [port](const auto& connection) {
    return static_cast<const Connection&>(*connection).port() == static_cast<int>(port);
  });
  return static_cast<double>(uses + 1) / static_cast<double>(std::max<uint64_t>(1, ports_[port].bits_per_second));
}

// Of those that were named, all, since somebody wants them used. Otherwise the system's routes have the last word, and
// say only which port comes first in the peer's network, not which of several in it is near.
std::vector<int> Transport::ports_to(const sockaddr_storage& target, const std::string& peer) const {
  const bool named = !options_.devices.empty();
  // A peer on this very host is the system's matter, too.
  const bool is_here =
      std::any_of(ports_.begin(), ports_.end(), [&](const Port& port) { return are_the_same(port.address, target); });
  if (!named && (ports_.size() < 2 || is_here)) return {-1};
  using Rank = std::tuple<bool, int, double, double, size_t>;
  std::vector<Rank> ranks;
  for (size_t i = 0; i < ports_.size(); ++i) {
    const PathEnd end = path_end(i);
    const int close = closeness(end, target);
    if (close < 0 || (!named && !is_in_network(end, target))) continue;
    ranks.emplace_back(is_avoided(static_cast<int>(i), peer) || !is_usable(i), -close, costs_[i], load_of(i), i);
  }
  std::sort(ranks.begin(), ranks.end());
  if (!named && ranks.size() > 1) ranks.resize(1);
  std::vector<int> ports;
  ports.reserve(ranks.size() + 1);
  for (const Rank& rank : ranks) ports.push_back(static_cast<int>(std::get<size_t>(rank)));
  if (!named || ports.empty()) ports.push_back(-1);
  return ports;
}

int Transport::port_of(const rdma_cm_id* id) const {
  if (id == nullptr || id->verbs == nullptr) return -1;
  const std::string name = ibv_get_device_name(id->verbs->device);
  const auto found = std::find_if(ports_.begin(), ports_.end(),
                                  [&](const Port& port) { return port.device == name && port.port == id->port_num; });
  return found == ports_.end() ? -1 : static_cast<int>(found - ports_.begin());
}

void Transport::avoid(int port, const std::string& peer) {
  std::erase_if(avoided_, [&](const Avoided& one) { return one.until <= now(); });
  avoided_.push_back({port, peer, now() + kAvoidFor});
}

bool Transport::is_avoided(int port, const std::string& peer) const {
  return std::any_of(avoided_.begin(), avoided_.end(),
                     [&](const Avoided& one) { return one.port == port && one.peer == peer && one.until > now(); });
}

uint16_t Transport::listen_for_lanes(size_t port) {
  CmId& listener = lane_listeners_[port];
  if (listener == nullptr) {
    absl::StatusOr<CmId> id = make_id(nullptr);
    if (!id.ok() || rdma_bind_addr(id->get(), address_of(static_cast<int>(port))) != 0 ||
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
    env().log->warning("the RDMA device that was listened on was taken away; nobody can connect over it any more");
    std::erase_if(listeners_, is_event_of);
  }
}

// Whoever does not know the number that a connection's peer was told gets nothing made for it.
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
    if (ours.uses(*adapter))
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

}  // namespace gleaner::transport::rdma
