#include "common/transport/stream/socket_transport.h"

#include <optional>
#include <utility>

#include "common/base/status_macros.h"

namespace gleaner::transport::stream {

SocketTransport::SocketTransport(const Env& env, const Options& options, Handler* handler, const wire::JobSecrets* jobs)
    : Transport(env, options, handler, jobs),
      listener_(this, [this](Descriptor socket) { accept(std::move(socket)); }) {}

absl::StatusOr<Address> SocketTransport::listen(const Address& address) {
  if (listener_.is_open()) return absl::FailedPreconditionError("this transport listens already");
  GLN_ASSIGN_OR_RETURN(Bound bound, bind(address));
  GLN_RETURN_IF_ERROR(listener_.open(std::move(bound.socket)));
  return std::move(bound.address);
}

void SocketTransport::accept(Descriptor socket) {
  const std::optional<wire::ServerHandshake> handshake = greet();
  if (!handshake.has_value()) return;
  std::unique_ptr<SocketConnection> made = accepted(std::move(socket), *handshake);
  SocketConnection& connection = *made;
  adopt(std::move(made));
  absl::Status status = connection.watch();
  if (!status.ok()) connection.close(std::move(status));
}

}  // namespace gleaner::transport::stream
