// How a connection is made: one transport after the other.
#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/transport/any/transport.h"

namespace gleaner::transport::any {

absl::Status Connection::all_failed() const {
  if (failures_.size() == 1) return failures_[0].why;
  return absl::Status(failures_.back().why.code(),
                      absl::StrJoin(failures_, "; ", [](std::string* out, const Failure& one) {
                        absl::StrAppend(out, name_of(one.kind), ": ", one.why.message());
                      }));
}

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
  connection->deadline_ = now() + options.timeout;
  connection->best_ = choice.order.front().kind;
  connection->order_ = in_order(peer, std::move(choice.order));
  GLN_RETURN_IF_ERROR(try_next(*connection));
  connections_.push_back(std::move(connection));
  return connections_.back().get();
}

// Why not those that the other one has, from here: what is missing here has a reason of its own.
std::string Transport::why_not(const Choice& choice) const {
  Choice told = choice;
  for (Excluded& one : told.excluded) {
    const Inner* const inner = find(one.kind);
    if (inner != nullptr && !inner->unusable.ok()) one.why = std::string(inner->unusable.message());
  }
  return told.excluded.empty() ? "it offers none" : told.why_not();
}

// Those that keep failing with this peer come last.
std::vector<Endpoint> Transport::in_order(const std::string& peer, std::vector<Endpoint> order) const {
  std::stable_partition(order.begin(), order.end(),
                        [&](const Endpoint& endpoint) { return !history_.is_shunned(peer, endpoint.kind, now()); });
  return order;
}

// The status says why there is none left to try.
absl::Status Transport::try_next(Connection& connection) {
  while (connection.tried_ < connection.order_.size()) {
    const Endpoint& endpoint = connection.order_[connection.tried_++];
    absl::Status status = try_one(connection, endpoint);
    if (status.ok()) return status;
    connection.failures_.push_back({endpoint.kind, std::move(status)});
  }
  return connection.all_failed();
}

absl::Status Transport::try_one(Connection& connection, const Endpoint& endpoint) {
  const Inner& inner = *find(endpoint.kind);
  ConnectOptions options = connection.options_;
  options.context = &connection;
  const auto left = static_cast<double>(connection.order_.size() - connection.tried_ + 1);
  options.timeout = (connection.deadline_ - now()) / left;
  Address target = endpoint.address;
  if (endpoint.kind == Kind::kShm) {
    // The directory is the same, where it is mounted need not be.
    const std::filesystem::path there = target.host;
    target.host = (std::filesystem::path(inner.option.directory) / there.filename()).string();
  }
  GLN_ASSIGN_OR_RETURN(connection.inner_, inner.transport->connect(target, options));
  connection.kind_ = endpoint.kind;
  return absl::OkStatus();
}

void Transport::on_connected(transport::Connection& inner, Kind kind) {
  if (inner.context == nullptr) {  // made to us
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
  for (const Connection::Failure& failure : connection.failures_) {
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
    const bool was_tried = std::any_of(connection.failures_.begin(), connection.failures_.end(),
                                       [before](const Connection::Failure& failure) { return failure.kind == before; });
    env_.log->warning("peer reached by another transport", "peer", peer, "from", name_of(before), "to",
                      name_of(connection.kind_), "reason", history_.last_failure(peer, before).message());
    count(before, connection.kind_, was_tried ? Reason::kConnect : Reason::kBroke);
  }
}

void Transport::on_closed(transport::Connection& inner, const absl::Status& status) {
  if (inner.context == nullptr) return handler_->on_closed(inner, status);  // it never came up
  auto& connection = *static_cast<Connection*>(inner.context);
  absl::Status told = status;
  if (connection.up_) {
    --counters_.connections[static_cast<size_t>(connection.kind_)];
    if (!inner.peer().accepted && !connection.closing_) {
      history_.on_broken(connection.peer_, connection.kind_, status, now() - connection.up_since_, now());
    }
  } else if (!connection.closing_) {
    connection.failures_.push_back({connection.kind_, status});
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

}  // namespace gleaner::transport::any
