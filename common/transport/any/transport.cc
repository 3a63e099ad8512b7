#include "common/transport/any/transport.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace gleaner::transport::any {
namespace {

// While other transports have events, only one poll() in so many also polls tcp.
constexpr uint32_t kTurnsWithoutTcp = 8;

}  // namespace

absl::string_view name_of(Reason reason) {
  switch (reason) {
    case Reason::kStart:
      return "start";
    case Reason::kConnect:
      return "connect";
    case Reason::kBroke:
      return "broke";
  }
  return "unknown";
}

Transport::Transport(const Env& env, Preferences preferences, Handler* handler)
    : env_(env), preferences_(std::move(preferences)), handler_(handler) {}

absl::StatusOr<std::unique_ptr<Transport>> Transport::create(const Env& env, const std::vector<Option>& options,
                                                             const Preferences& preferences, Handler* handler) {
  auto transport = std::unique_ptr<Transport>(new Transport(env, preferences, handler));
  GLN_RETURN_IF_ERROR(transport->open(options));
  return transport;
}

absl::Status Transport::open(const std::vector<Option>& options) {
  const auto option_of = [&](Kind kind) {
    const auto found =
        std::find_if(options.begin(), options.end(), [kind](const Option& option) { return option.kind == kind; });
    return found == options.end() ? Option{kind, nullptr, "", ""} : *found;
  };
  for (const Kind kind : preferences_.kinds) GLN_RETURN_IF_ERROR(add(option_of(kind)));
  if (find(Kind::kTcp) == nullptr) {
    GLN_RETURN_IF_ERROR(add(option_of(Kind::kTcp)));
    inners_.back()->wanted = false;
  }
  log_dropped();
  tcp_ = find(Kind::kTcp)->transport.get();
  DescriptorWatcher* const watcher = tcp_->extensions().descriptor_watcher;
  for (const auto& inner : inners_) {
    if (inner->transport == nullptr || inner->transport.get() == tcp_ || inner->transport->descriptor() < 0) continue;
    if (watcher == nullptr) return absl::UnimplementedError("transport tcp can't wait for other transports");
    GLN_RETURN_IF_ERROR(watcher->watch_beside(inner->transport->descriptor(), &inner->ready));
  }
  return absl::OkStatus();
}

absl::Status Transport::add(const Option& option) {
  Inner& inner = *inners_.emplace_back(std::make_unique<Inner>(this, option));
  auto made = option.make ? option.make(&inner) : absl::UnimplementedError("this build of gleaner does not include it");
  if (!made.ok()) return drop(inner, made.status());
  inner.transport = *std::move(made);
  inner.spinner = inner.transport->extensions().spinner;
  return absl::OkStatus();
}

absl::Status Transport::drop(Inner& inner, const absl::Status& why) {
  const Kind kind = inner.option.kind;
  inner.spinner = nullptr;
  if (inner.transport != nullptr && inner.transport->descriptor() >= 0) {  // watched since create()
    tcp_->extensions().descriptor_watcher->unwatch(inner.transport->descriptor());
  }
  inner.transport.reset();
  inner.ready = false;
  inner.unusable = why;
  absl::Status failure(why.code(), absl::StrCat("transport ", name_of(kind), ": ", why.message()));
  const size_t place = rank(kind);
  const bool is_last = place + 1 == preferences_.kinds.size();
  if (kind == Kind::kTcp || (is_last && preferences_.forced())) return failure;
  const bool is_nothing_new = absl::IsNotFound(why) || absl::IsUnimplemented(why);
  inner.warning_due = !is_nothing_new || preferences_.named;
  return absl::OkStatus();
}

// Logs and counts the transports that can't be used. Called when all have been tried, since only then it is known which
// transport replaces each of them.
void Transport::log_dropped() {
  for (auto inner = inners_.begin(); inner != inners_.end(); ++inner) {
    if (!std::exchange((*inner)->warning_due, false)) continue;
    const auto is_usable = [](const auto& other) { return other->wanted && other->transport != nullptr; };
    auto next = std::find_if(inner, inners_.end(), is_usable);
    if (next == inners_.end()) next = std::find_if(inners_.begin(), inner, is_usable);
    if (next == inner) continue;
    const Kind from = (*inner)->option.kind, to = (*next)->option.kind;
    env_.log->warning("transport can't be used; going on without it", "transport", name_of(from), "next", name_of(to),
                      "reason", (*inner)->unusable.message());
    count(from, to, Reason::kStart);
  }
}

void Transport::count(Kind from, Kind to, Reason why) {
  ++counters_.fallbacks[static_cast<size_t>(from)][static_cast<size_t>(to)][static_cast<size_t>(why)];
}

Transport::Inner* Transport::find(Kind kind) const {
  for (const auto& inner : inners_) {
    if (inner->option.kind == kind) return inner.get();
  }
  return nullptr;
}

size_t Transport::rank(Kind kind) const {
  const auto& kinds = preferences_.kinds;
  return static_cast<size_t>(std::find(kinds.begin(), kinds.end(), kind) - kinds.begin());
}

absl::StatusOr<Address> Transport::listen(const Address& address) {
  Inner& tcp = *find(Kind::kTcp);
  GLN_ASSIGN_OR_RETURN(tcp.address, tcp.transport->listen(address));
  for (const auto& inner : inners_) {
    if (inner.get() == &tcp || inner->transport == nullptr) continue;
    const bool in_directory = inner->option.kind == Kind::kShm;
    auto where = inner->transport->listen(in_directory ? Address{inner->option.directory, 0} : tcp.address);
    if (where.ok()) {
      inner->address = *std::move(where);
    } else {
      GLN_RETURN_IF_ERROR(drop(*inner, where.status()));
    }
  }
  log_dropped();
  return tcp.address;
}

std::vector<Endpoint> Transport::endpoints(const std::string& advertise) const {
  std::vector<Endpoint> told;
  for (const auto& inner : inners_) {
    if (!inner->wanted || inner->transport == nullptr || inner->address.host.empty()) continue;
    told.push_back({inner->option.kind, inner->option.host, inner->address});
    if (!advertise.empty() && inner->option.kind != Kind::kShm) told.back().address.host = advertise;
  }
  return told;
}

// Returns this side's endpoints without addresses, which choose() does not look at.
std::vector<Endpoint> Transport::mine() const {
  std::vector<Endpoint> mine;
  for (const auto& inner : inners_) {
    if (inner->wanted && inner->transport != nullptr) mine.push_back({inner->option.kind, inner->option.host, {}});
  }
  return mine;
}

// Making connections.

absl::StatusOr<transport::Connection*> Transport::connect(const Address& address, const ConnectOptions& options) {
  return connect(address.to_string(), {{Kind::kTcp, "", address}}, options);
}

absl::StatusOr<transport::Connection*> Transport::connect(const std::string& peer, const std::vector<Endpoint>& theirs,
                                                          const ConnectOptions& options) {
  Choice choice = choose(mine(), theirs);
  if (choice.order.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("no transport in common with ", peer, " (", why_not(choice), "); see GLEANER_TRANSPORTS"));
  }
  auto connection = std::make_unique<Connection>();
  connection->context = options.context;
  connection->peer_ = peer;
  connection->options_ = options;
  connection->best_ = choice.order.front().kind;
  connection->attempts_ = Attempts(in_order(peer, std::move(choice.order)), now() + options.timeout);
  GLN_RETURN_IF_ERROR(try_next(*connection));
  connections_.push_back(std::move(connection));
  return connections_.back().get();
}

// Returns the reason for which each excluded transport is excluded. If this machine can't use the transport, the reason
// is the error of that.
std::string Transport::why_not(const Choice& choice) const {
  Choice told = choice;
  for (Excluded& one : told.excluded) {
    const Inner* const inner = find(one.kind);
    if (inner != nullptr && !inner->unusable.ok()) one.why = std::string(inner->unusable.message());
  }
  return told.excluded.empty() ? "the peer offers none" : told.why_not();
}

// Moves transports that are demoted with this peer to the end.
std::vector<Endpoint> Transport::in_order(const std::string& peer, std::vector<Endpoint> order) const {
  std::stable_partition(order.begin(), order.end(),
                        [&](const Endpoint& endpoint) { return !history_.is_demoted(peer, endpoint.kind, now()); });
  return order;
}

// Tries the endpoints that are left. An error gives the failures of all attempts.
absl::Status Transport::try_next(Connection& connection) {
  while (const Endpoint* const endpoint = connection.attempts_.next()) {
    absl::Status status = try_one(connection, *endpoint);
    if (status.ok()) return status;
    connection.attempts_.fail(std::move(status));
  }
  return connection.attempts_.all_failed();
}

absl::Status Transport::try_one(Connection& connection, const Endpoint& endpoint) {
  const Inner& inner = *find(endpoint.kind);
  ConnectOptions options = connection.options_;
  options.context = &connection;
  options.timeout = connection.attempts_.timeout(now());
  Address target = endpoint.address;
  if (endpoint.kind == Kind::kShm) {
    // Both sides see the same directory, but may have it mounted at different paths.
    const std::filesystem::path there = target.host;
    target.host = (std::filesystem::path(inner.option.directory) / there.filename()).string();
  }
  GLN_ASSIGN_OR_RETURN(connection.inner_, inner.transport->connect(target, options));
  connection.kind_ = endpoint.kind;
  return absl::OkStatus();
}

void Transport::on_connected(transport::Connection& inner, Kind kind) {
  if (inner.context == nullptr) {  // accepted
    connections_.push_back(std::make_unique<Connection>());
    inner.context = connections_.back().get();
  }
  auto& connection = *static_cast<Connection*>(inner.context);
  connection.inner_ = &inner;
  connection.kind_ = kind;
  connection.up_ = true;
  connection.up_since_ = now();
  ++counters_.connections[static_cast<size_t>(kind)];
  if (!inner.peer().accepted) note_use(connection);
  handler_->on_connected(connection);
}

void Transport::note_use(const Connection& connection) {
  const std::string& peer = connection.peer_;
  for (const Attempts::Failure& failure : connection.attempts_.failures()) {
    history_.on_failed(peer, failure.kind, failure.why, now());
  }
  const Kind before = history_.used(peer).value_or(connection.best_);
  history_.use(peer, connection.kind_);
  if (before == connection.kind_) {
    env_.log->debug("peer reached", "peer", peer, "transport", name_of(before));
  } else if (rank(connection.kind_) < rank(before)) {
    env_.log->info("peer reached by a better transport", "peer", peer, "from", name_of(before), "to",
                   name_of(connection.kind_));
  } else {
    env_.log->warning("peer reached by another transport", "peer", peer, "from", name_of(before), "to",
                      name_of(connection.kind_), "reason", history_.last_failure(peer, before).message());
    count(before, connection.kind_, connection.attempts_.has_failed(before) ? Reason::kConnect : Reason::kBroke);
  }
}

void Transport::on_closed(transport::Connection& inner, const absl::Status& status) {
  if (inner.context == nullptr) return handler_->on_closed(inner, status);  // accepted, and never up
  auto& connection = *static_cast<Connection*>(inner.context);
  absl::Status told = status;
  if (connection.up_) {
    --counters_.connections[static_cast<size_t>(connection.kind_)];
    if (!inner.peer().accepted && !connection.closing_) {
      history_.on_broken(connection.peer_, connection.kind_, status, now() - connection.up_since_, now());
    }
  } else if (!connection.closing_) {
    connection.attempts_.fail(status);
    told = try_next(connection);
    if (told.ok()) return;
  }
  connection.inner_ = &inner;
  handler_->on_closed(connection, told);
  forget(connection);
}

void Transport::forget(const Connection& connection) {
  std::erase_if(connections_, [&connection](const auto& owned) { return owned.get() == &connection; });
}

// Waiting and polling.

bool Transport::is_ready() const {
  return std::any_of(inners_.begin(), inners_.end(), [](const auto& inner) { return inner->ready; });
}

bool Transport::pending() const {
  return std::any_of(inners_.begin(), inners_.end(),
                     [](const auto& inner) { return inner->transport != nullptr && inner->transport->pending(); });
}

void Transport::wait(absl::Duration timeout) {
  if (spin_before_wait(timeout)) return;
  tcp_->wait(timeout);
}

bool Transport::spin_before_wait(absl::Duration timeout) {
  for (const auto& inner : inners_) {
    if (inner->spinner == nullptr) continue;
    inner->ready |= inner->spinner->spin_before_wait(is_ready() ? absl::ZeroDuration() : timeout);
  }
  return is_ready();
}

void Transport::poll(absl::Duration timeout) {
  flush();
  if (!is_ready()) wait(pending() ? absl::ZeroDuration() : timeout);
  poll_inners();
  flush();  // callbacks of one transport may have sent frames by another
}

void Transport::poll_inners() {
  const bool others_are_ready = is_ready();
  if (!others_are_ready || tcp_->pending() || ++turns_without_tcp_ % kTurnsWithoutTcp == 0) {
    tcp_->poll(absl::ZeroDuration());
  }
  for (const auto& inner : inners_) {
    if (inner->transport == nullptr || inner->transport.get() == tcp_) continue;
    if (std::exchange(inner->ready, false) || inner->transport->pending()) inner->transport->poll(absl::ZeroDuration());
  }
}

void Transport::flush() {
  for (const auto& inner : inners_) {
    if (inner->transport != nullptr) inner->transport->flush();
  }
}

void Transport::pace(double bits_per_second) {
  for (const auto& inner : inners_) {
    if (inner->transport == nullptr) continue;
    Pacer* const pacer = inner->transport->extensions().pacer;
    if (pacer != nullptr) pacer->pace(bits_per_second);
  }
}

AdapterCounters Transport::adapter_counters() const {
  AdapterCounters sum;
  for (const auto& inner : inners_) {
    if (inner->transport == nullptr) continue;
    const AdapterStatistics* const adapters = inner->transport->extensions().adapter_statistics;
    if (adapters != nullptr) sum += adapters->adapter_counters();
  }
  return sum;
}

}  // namespace gleaner::transport::any
