// Port is the port that members connect to: the gRPC server, its certificate, and its limits for streams whose members
// are not authenticated.
//
// Port calls `on_opened` with every stream that it accepts, on one of gRPC's threads, before anything is read from the
// stream.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "common/base/address.h"
#include "common/proto/coordinator.grpc.pb.h"
#include "coordinator/service/service.h"
#include "coordinator/service/stream.h"
#include "coordinator/service/unauthenticated_streams.h"

namespace gleaner::coordinator {

class Port final : private v1::Coordinator::WithRawCallbackMethod_Join<v1::Coordinator::Service> {
 public:
  using OnOpened = std::function<void(std::shared_ptr<Stream>)>;

  // ResourceExhausted: there are too few threads for gRPC. AlreadyExists: the port is in use. InvalidArgument:
  // `address` is not an address of this machine, or the certificate can't be used. `bounded`: limits the data that
  // waits to be read. Above the limit members may lose their streams, so set it only if members can return.
  static absl::StatusOr<std::unique_ptr<Port>> open(const Address& address,
                                                    const std::optional<coordinator::Service::Tls>& tls, bool bounded,
                                                    std::shared_ptr<EventQueue> events, OnOpened on_opened);
  // Cancels streams that have not ended within 0.2 s.
  ~Port() override;

  const Address& address() const { return address_; }    // with the port in use
  uint64_t turned_away() const { return turned_away_; }  // streams refused because too many were unauthenticated

 private:
  Port(std::shared_ptr<EventQueue> events, OnOpened on_opened);
  absl::Status listen(const Address& address, const std::optional<coordinator::Service::Tls>& tls, bool bounded);
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Join(grpc::CallbackServerContext* context) override;

  const std::shared_ptr<EventQueue> events_;
  const OnOpened on_opened_;
  const std::shared_ptr<UnauthenticatedStreams> streams_;
  std::atomic<StreamId> last_id_{0};
  std::atomic<uint64_t> turned_away_{0};
  Address address_;
  std::unique_ptr<grpc::Server> grpc_;
};

}  // namespace gleaner::coordinator
