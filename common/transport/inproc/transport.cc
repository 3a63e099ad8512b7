#include "common/transport/inproc/transport.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace gleaner::transport::inproc {

Transport::~Transport() {
  if (!listening_.empty()) hub_->listeners_.erase(listening_);
}

absl::StatusOr<Address> Transport::listen(const Address& address) {
  std::string name = address.to_string();
  if (!hub_->listeners_.try_emplace(name, this).second) {
    return absl::AlreadyExistsError(absl::StrCat("can't listen on ", name, " in this process: something does already"));
  }
  listening_ = std::move(name);
  return address;
}

absl::StatusOr<transport::Connection*> Transport::connect(const Address& address, const ConnectOptions& options) {
  const auto found = hub_->listeners_.find(address.to_string());
  if (found == hub_->listeners_.end()) {
    return absl::UnavailableError(
        absl::StrCat("can't connect to ", address.to_string(), ": nothing in this process listens there"));
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
  switch (event.kind) {
    case Event::Kind::kConnected:
      if (!event.connection->closed_) handler_->on_connected(*event.connection);
      return;
    case Event::Kind::kFrame:
      if (!event.connection->closed_) handler_->on_frame(*event.connection, event.header, std::move(event.payload));
      return;
    case Event::Kind::kClosed:
      handler_->on_closed(*event.connection, event.status);
      std::erase_if(connections_, [&event](const auto& owned) { return owned.get() == event.connection; });
      return;
  }
}

}  // namespace gleaner::transport::inproc
