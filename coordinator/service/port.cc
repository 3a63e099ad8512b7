#include "coordinator/service/port.h"

#include <grpc/support/time.h>
#include <grpcpp/resource_quota.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/listening.h"
#include "common/base/status_macros.h"
#include "common/proto/grpc_start.h"
#include "common/proto/plan_codec.h"
#include "coordinator/service/certificate.h"

namespace gleaner::coordinator {
namespace {

constexpr size_t kMostUnauthenticated = 4096;
constexpr size_t kMostUnauthenticatedPerHost = 256;
constexpr int kStreamsPerConnection = 16;
constexpr int kIdleConnectionMs = 60'000;  // without a stream
constexpr int kHandshakeMs = 10'000;       // of TCP, TLS and HTTP/2
constexpr int kKeepaliveMs = 20'000;       // detects connections whose machine is gone
// The limit of all connections together for data that is received and not yet read. gRPC receives a whole message
// before the coordinator can reject its length, so this limit keeps unauthenticated peers from filling the memory.
// Above it gRPC resets some stream, not always the one that fills the memory.
constexpr size_t kMostBufferedBytes = size_t{256} << 20;
constexpr int kMostMetadataBytes = 16 << 10;
constexpr int kFarewellMs = 200;  // for the last status of streams that have just ended

// Ends a stream that is turned away.
class Refusal final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  explicit Refusal(const grpc::Status& status) { Finish(status); }
  void OnDone() override { delete this; }
};

}  // namespace

Port::Port(std::shared_ptr<EventQueue> events, OnOpened on_opened)
    : events_(std::move(events)),
      on_opened_(std::move(on_opened)),
      streams_(std::make_shared<UnauthenticatedStreams>(kMostUnauthenticated, kMostUnauthenticatedPerHost)) {}

absl::StatusOr<std::unique_ptr<Port>> Port::open(const Address& address,
                                                 const std::optional<coordinator::Service::Tls>& tls, bool bounded,
                                                 std::shared_ptr<EventQueue> events, OnOpened on_opened) {
  auto port = std::unique_ptr<Port>(new Port(std::move(events), std::move(on_opened)));
  GLN_RETURN_IF_ERROR(port->listen(address, tls, bounded));
  return port;
}

absl::Status Port::listen(const Address& address, const std::optional<coordinator::Service::Tls>& tls, bool bounded) {
  // gRPC returns no reason for a failure; it writes to its log.
  GLN_RETURN_IF_ERROR(listen_on(address).status());
  GLN_RETURN_IF_ERROR(proto::start_grpc(proto::server_threads() + 1, "the coordinator's port"));
  std::shared_ptr<grpc::ServerCredentials> credentials = grpc::InsecureServerCredentials();
  if (tls.has_value()) {
    GLN_ASSIGN_OR_RETURN(credentials, server_credentials(tls->certificate_file, tls->key_file));
  }
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(address.to_string(), credentials, &port);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);  // a second coordinator on this port is a mistake
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kStreamsPerConnection);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleConnectionMs);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMostMetadataBytes);
  if (bounded) builder.SetResourceQuota(grpc::ResourceQuota("members").Resize(kMostBufferedBytes));
  builder.SetMaxReceiveMessageSize(proto::kMaxMessageBytes);
  builder.SetMaxSendMessageSize(proto::kMaxMessageBytes);
  builder.RegisterService(this);
  grpc_ = builder.BuildAndStart();
  if (grpc_ == nullptr || port == 0) {
    return absl::UnavailableError(
        absl::StrCat("gRPC can't listen on ", address.to_string(), "; gRPC's log has the reason"));
  }
  address_ = {address.host, static_cast<uint16_t>(port)};
  return absl::OkStatus();
}

Port::~Port() {
  if (grpc_ == nullptr) return;
  grpc_->Shutdown(gpr_time_add(gpr_now(GPR_CLOCK_REALTIME), gpr_time_from_millis(kFarewellMs, GPR_TIMESPAN)));
  grpc_->Wait();
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Port::Join(grpc::CallbackServerContext* context) {
  const std::string peer = context->peer();
  UnauthenticatedStreams::Slot slot = streams_->admit(peer);
  if (!slot.is_admitted()) {
    ++turned_away_;
    return new Refusal(
        {grpc::StatusCode::RESOURCE_EXHAUSTED, "too many streams are not authenticated yet; try again in a moment"});
  }
  std::shared_ptr<Stream> stream = Stream::create(++last_id_, peer, std::move(slot), events_);
  Stream* reactor = stream.get();
  on_opened_(std::move(stream));
  return reactor;
}

}  // namespace gleaner::coordinator
