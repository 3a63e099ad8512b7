#include "common/transport/tcp/transport.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "common/base/status_macros.h"

namespace gleaner::transport::tcp {

Transport::Transport(const Env& env, const Options& options, Handler* handler, const wire::JobSecrets* jobs)
    : stream::Transport(env, options, handler, jobs),
      listener_(this, [this](Descriptor socket) { accept(std::move(socket)); }) {}

absl::StatusOr<std::unique_ptr<Transport>> Transport::create(const Env& env, const Options& options, Handler* handler,
                                                             const wire::JobSecrets* jobs) {
  auto transport = std::unique_ptr<Transport>(new Transport(env, options, handler, jobs));
  GLN_RETURN_IF_ERROR(transport->open());
  return transport;
}

absl::StatusOr<Address> Transport::listen(const Address& address) {
  if (listener_.is_open()) return absl::FailedPreconditionError("this transport listens already");
  GLN_ASSIGN_OR_RETURN(Descriptor socket, listen_on(address));
  GLN_ASSIGN_OR_RETURN(Address local, local_address(socket));
  GLN_RETURN_IF_ERROR(listener_.open(std::move(socket)));
  return local;
}

absl::StatusOr<transport::Connection*> Transport::connect(const Address& address, const ConnectOptions& options) {
  GLN_ASSIGN_OR_RETURN(const wire::Nonce nonce, draw_nonce());
  GLN_ASSIGN_OR_RETURN(std::vector<Target> targets, resolve(address));
  auto connection = std::make_unique<Connection>(this, std::move(targets), address.to_string(), options, nonce);
  GLN_RETURN_IF_ERROR(connection->connect_next());
  GLN_RETURN_IF_ERROR(connection->watch());
  return adopt(std::move(connection));
}

void Transport::accept(Descriptor socket) {
  std::optional<wire::ServerHandshake> handshake = greet();
  if (!handshake.has_value()) return;
  tune(socket);
  std::string address = peer_address(socket);
  auto connection = std::make_unique<Connection>(this, std::move(socket), std::move(address), *handshake);
  Connection& accepted = *connection;
  adopt(std::move(connection));
  absl::Status status = accepted.watch();
  if (!status.ok()) accepted.close(std::move(status));
}

void Transport::pace(double bits_per_second) {
  pace_bits_per_second_ = bits_per_second;
  on_connections_changed();
}

// Divides the rate limit among the accepted connections that are up.
void Transport::on_connections_changed() {
  if (pace_bits_per_second_ <= 0) return;
  const auto has_share = [](const auto& connection) { return connection->peer().accepted && connection->is_up(); };
  const auto sharers = std::count_if(connections().begin(), connections().end(), has_share);
  for (const auto& connection : connections()) {
    if (!has_share(connection)) continue;
    static_cast<Connection&>(*connection).pace(pace_bits_per_second_ / static_cast<double>(sharers));
  }
}

}  // namespace gleaner::transport::tcp
