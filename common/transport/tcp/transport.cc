#include "common/transport/tcp/transport.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"

namespace gleaner::transport::tcp {

Transport::Transport(const Env& env, const Options& options, Handler* handler, const wire::JobSecrets* jobs)
    : stream::SocketTransport(env, options, handler, jobs) {}

absl::StatusOr<std::unique_ptr<Transport>> Transport::create(const Env& env, const Options& options, Handler* handler,
                                                             const wire::JobSecrets* jobs) {
  auto transport = std::unique_ptr<Transport>(new Transport(env, options, handler, jobs));
  GLN_RETURN_IF_ERROR(transport->open());
  return transport;
}

absl::StatusOr<stream::SocketTransport::Bound> Transport::bind(const Address& address) {
  Bound bound;
  GLN_ASSIGN_OR_RETURN(bound.socket, listen_on(address));
  GLN_ASSIGN_OR_RETURN(bound.address, local_address(bound.socket));
  return bound;
}

absl::StatusOr<transport::Connection*> Transport::connect(const Address& address, const ConnectOptions& options) {
  GLN_ASSIGN_OR_RETURN(const wire::Nonce nonce, draw_nonce());
  GLN_ASSIGN_OR_RETURN(std::vector<Target> targets, resolve(address));
  auto connection = std::make_unique<Connection>(this, std::move(targets), address.to_string(), options, nonce);
  GLN_RETURN_IF_ERROR(connection->connect_next());
  GLN_RETURN_IF_ERROR(connection->watch());
  return adopt(std::move(connection));
}

std::unique_ptr<stream::SocketConnection> Transport::accepted(Descriptor socket,
                                                              const wire::ServerHandshake& handshake) {
  tune(socket);
  std::string address = peer_address(socket);
  return std::make_unique<Connection>(this, std::move(socket), std::move(address), handshake);
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
