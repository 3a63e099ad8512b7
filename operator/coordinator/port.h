// The port that members connect to: the gRPC server, its certificate, and its limits for streams that have not proved
// anything.
//
// Every stream that is let in is handed to `on_opened`, on one of gRPC's threads; nothing is read from it yet.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "common/base/address.h"
#include "common/proto/coordinator.grpc.pb.h"
#include "operator/coordinator/service.h"
#include "operator/coordinator/strangers.h"
#include "operator/coordinator/stream.h"

namespace gleaner::coordinator {

class Port final : private v1::Coordinator::WithRawCallbackMethod_Join<v1::Coordinator::Service> {
 public:
  using OnOpened = std::function<void(std::shared_ptr<Stream>)>;

  // AlreadyExists: the port is in use; InvalidArgument: `address` is none of this machine, or the certificate can't be
  // used. `bounded`: what waits to be read has a limit, above which members may lose their streams: for those that come
  // back.
  static absl::StatusOr<std::unique_ptr<Port>> open(const Address& address,
                                                    const std::optional<coordinator::Service::Tls>& tls, bool bounded,
                                                    std::shared_ptr<Inbox> inbox, OnOpened on_opened);
  // Streams that have not ended by then are cancelled.
  ~Port() override;

  const Address& address() const { return address_; }    // with the port in use
  uint64_t turned_away() const { return turned_away_; }  // streams that were too many

 private:
  Port(std::shared_ptr<Inbox> inbox, OnOpened on_opened);
  absl::Status listen(const Address& address, const std::optional<coordinator::Service::Tls>& tls, bool bounded);
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Join(grpc::CallbackServerContext* context) override;

  const std::shared_ptr<Inbox> inbox_;
  const OnOpened on_opened_;
  const std::shared_ptr<Strangers> strangers_;
  std::atomic<StreamId> last_id_{0};
  std::atomic<uint64_t> turned_away_{0};
  Address address_;
  std::unique_ptr<grpc::Server> grpc_;
};

}  // namespace gleaner::coordinator
