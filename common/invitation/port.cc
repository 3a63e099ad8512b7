#include "common/invitation/port.h"

#include <grpcpp/grpcpp.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/listening.h"
#include "common/base/status_macros.h"
#include "common/invitation/acceptance.h"
#include "common/invitation/call.h"
#include "common/proto/grpc_start.h"

namespace gleaner::invitation {
namespace {

constexpr int kMostMessageBytes = 16 << 10;
constexpr int kInviterKeepaliveMs = 20'000;  // detects inviters whose machine is gone
constexpr int kFarewellMs = 200;             // for the last status of streams that have just ended

class Port final : public InvitationPort, private v1::WaitingSummer::CallbackService {
 public:
  Port(const Env& env, const std::string& token) : acceptance_(std::make_shared<Acceptance>(env, token)) {}

  ~Port() override {
    if (grpc_ == nullptr) return;
    acceptance_->stop();
    acceptance_->end(absl::UnavailableError("the summer's process is about to end"));
    grpc_->Shutdown(gpr_time_add(gpr_now(GPR_CLOCK_REALTIME), gpr_time_from_millis(kFarewellMs, GPR_TIMESPAN)));
    grpc_->Wait();
  }

  absl::Status listen(const Address& address) {
    // gRPC returns no reason for a failure; it writes to its log.
    GLN_RETURN_IF_ERROR(listen_on(address).status());
    GLN_RETURN_IF_ERROR(proto::start_grpc(proto::server_threads() + 1, "the port for invitations"));
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort(address.to_string(), grpc::InsecureServerCredentials(), &port);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);  // a second summer on this port is a mistake
    builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kProofMs);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kInviterKeepaliveMs);
    builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMostMessageBytes);
    builder.SetMaxReceiveMessageSize(kMostMessageBytes);
    builder.RegisterService(this);
    grpc_ = builder.BuildAndStart();
    if (grpc_ == nullptr || port == 0) {
      return absl::UnavailableError(
          absl::StrCat("gRPC can't listen on ", address.to_string(), "; gRPC's log has the reason"));
    }
    address_ = {address.host, static_cast<uint16_t>(port)};
    return absl::OkStatus();
  }

  Address address() const override { return address_; }
  std::optional<Invitation> next() override { return acceptance_->next(); }
  void on_inviter_gone(std::function<void()> action) override { acceptance_->on_inviter_gone(std::move(action)); }
  void joined() override { acceptance_->joined(); }
  void end(const absl::Status& how) override { acceptance_->end(how); }
  void stop() override { acceptance_->stop(); }

 private:
  Acceptance::Reactor* Serve(grpc::CallbackServerContext* context) override {
    return acceptance_->open(acceptance_, context);
  }

  const std::shared_ptr<Acceptance> acceptance_;
  Address address_;
  std::unique_ptr<grpc::Server> grpc_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<InvitationPort>> InvitationPort::open(const Env& env, const Address& listen,
                                                                     const std::string& token) {
  auto port = std::make_unique<Port>(env, token);
  GLN_RETURN_IF_ERROR(port->listen(listen));
  return port;
}

}  // namespace gleaner::invitation
