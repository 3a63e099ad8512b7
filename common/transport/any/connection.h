// Connection is a connection over one of several transports, with the state of the attempts to make it.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "common/transport/any/attempts.h"
#include "common/transport/transport.h"

namespace gleaner::transport::any {

class Transport;

class Connection final : public transport::Connection {
 public:
  void send(const wire::Header& header, Buffer payload) override { inner_->send(header, std::move(payload)); }
  size_t queued_bytes() const override { return inner_->queued_bytes(); }
  bool all_arrived() const override { return inner_->all_arrived(); }
  void close(absl::Status status) override {
    closing_ = true;
    inner_->close(std::move(status));
  }
  const Peer& peer() const override { return inner_->peer(); }
  Capabilities capabilities() const override { return inner_->capabilities(); }
  absl::Duration round_trip() const override { return inner_->round_trip(); }
  std::optional<Sent> sent() const override { return inner_->sent(); }
  void ping(uint32_t times) override { inner_->ping(times); }
  bool is_pinging() const override { return inner_->is_pinging(); }
  absl::Duration answer_time() const override { return inner_->answer_time(); }
  Kind kind() const override { return kind_; }  // before on_connected(): the transport that is being tried

 private:
  friend class Transport;
  transport::Connection* inner_ = nullptr;
  Kind kind_ = Kind::kTcp;
  bool up_ = false;
  bool closing_ = false;  // close() was called, so no other transport is tried
  absl::Duration up_since_;

  // The members below are used on the connecting side only.
  std::string peer_;
  ConnectOptions options_;
  Kind best_ = Kind::kTcp;  // the best transport that both sides have
  Attempts attempts_;
};

}  // namespace gleaner::transport::any
