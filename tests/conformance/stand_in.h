// StandIn: a TCP transport that reports another kind, so that the choice between transports can be tested on a machine
// without the other kind.
#pragma once

#include <memory>
#include <utility>

#include "common/transport/any/transport.h"
#include "common/transport/tcp/transport.h"

namespace gleaner::transport {

class StandIn : public Transport {
 public:
  explicit StandIn(std::unique_ptr<Transport> real) : real_(std::move(real)) {}
  // Ignores the address and listens on a free port, since the transport for which it stands has other names and ports.
  absl::StatusOr<Address> listen(const Address&) override { return real_->listen({"127.0.0.1", 0}); }
  absl::StatusOr<Connection*> connect(const Address& address, const ConnectOptions& options) override {
    return real_->connect(address, options);
  }
  void poll(absl::Duration timeout) override { real_->poll(timeout); }
  void wait(absl::Duration timeout) override { real_->wait(timeout); }
  void flush() override { real_->flush(); }
  int descriptor() const override { return real_->descriptor(); }
  bool pending() const override { return real_->pending(); }
  void wake() override { real_->wake(); }

 private:
  const std::unique_ptr<Transport> real_;
};

inline any::Option tcp_option(const Env& env, const tcp::Options& options, const wire::JobSecrets* jobs) {
  return {Kind::kTcp,
          [=](Handler* handler) -> absl::StatusOr<std::unique_ptr<Transport>> {
            return tcp::Transport::create(env, options, handler, jobs);
          },
          "", ""};
}

inline any::Option stand_in(const Env& env, Kind kind, const tcp::Options& options, const wire::JobSecrets* jobs) {
  return {kind,
          [=](Handler* handler) -> absl::StatusOr<std::unique_ptr<Transport>> {
            auto real = tcp::Transport::create(env, options, handler, jobs);
            if (!real.ok()) return real.status();
            return std::make_unique<StandIn>(*std::move(real));
          },
          "", ""};
}

}  // namespace gleaner::transport
