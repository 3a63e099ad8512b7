#include "common/transport/inproc/transport.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace gleaner::transport::inproc {

Transport::~Transport() {
  if (!listening_.empty()) hub_->listeners_.erase(listening_);
}

absl::StatusOr<Address> Transport::listen(const Address& address) {
  if (!listening_.empty()) return absl::FailedPreconditionError("this transport listens already");
  std::string name = address.to_string();
  if (!hub_->listeners_.try_emplace(name, this).second) {
    return absl::AlreadyExistsError(
        absl::StrCat("can't listen on ", name, " in this process: another transport listens there"));
  }
  listening_ = std::move(name);
  return address;
}

absl::StatusOr<transport::Connection*> Transport::connect(const Address& address, const ConnectOptions& options) {
  const auto found = hub_->listeners_.find(address.to_string());
  if (found == hub_->listeners_.end()) {
    return absl::UnavailableError(
        absl::StrCat("can't connect to ", address.to_string(), ": no transport in this process listens there"));
  }
  Transport& other = *found->second;
  const Peer here{options.job, 0, false, address.to_string()};
  const Peer there{options.job, options.member, true, "this process"};
  Connection* const mine = adopt(std::make_unique<Connection>(this, here));
  Connection* const theirs = other.adopt(std::make_unique<Connection>(&other, there));
  mine->context = options.context;
  mine->other_ = theirs;
  theirs->other_ = mine;
  other.post({Event::Kind::kConnected, theirs, {}, {}, {}});
  post({Event::Kind::kConnected, mine, {}, {}, {}});
  return mine;
}

Connection* Transport::adopt(std::unique_ptr<Connection> connection) {
  connections_.push_back(std::move(connection));
  return connections_.back().get();
}

void Transport::poll(absl::Duration) {
  handling_.swap(inbox_);
  for (Event& event : handling_) handle(event);
  handling_.clear();
}

void Transport::handle(Event& event) {
  Connection& connection = *event.connection;
  if (event.kind == Event::Kind::kClosed) {
    handler_->on_closed(connection, event.status);
    std::erase_if(connections_, [&connection](const auto& owned) { return owned.get() == &connection; });
    return;
  }
  // The event was on its way when this end closed. Its payload is released with it.
  if (connection.closed_) return;
  switch (event.kind) {
    case Event::Kind::kConnected:
      connection.up_ = true;
      return handler_->on_connected(connection);
    case Event::Kind::kFrame:
      if (connection.other_ != nullptr) connection.other_->taken(wire::kHeaderBytes + event.payload.size());
      return handler_->on_frame(connection, event.header, std::move(event.payload));
    case Event::Kind::kParted:
      return connection.close(absl::UnavailableError(absl::StrCat(
          "connection to ", connection.peer().address, " was closed by the peer: ", event.status.message())));
    case Event::Kind::kClosed:
      return;  // handled above
  }
}

}  // namespace gleaner::transport::inproc
