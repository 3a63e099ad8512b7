// A connection over one of several transports, and the attempts that lead to it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/transport/choose.h"
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
  Kind kind() const { return kind_; }  // what carries it, or is tried

 private:
  friend class Transport;
  struct Failure {
    Kind kind;
    absl::Status why;
  };
  // The failures of all attempts, with the code of the last.
  absl::Status all_failed() const;

  transport::Connection* inner_ = nullptr;
  Kind kind_ = Kind::kTcp;
  bool up_ = false;
  bool closing_ = false;  // we said so: nothing else is tried
  absl::Duration up_since_;

  // Of one that we make.
  std::string peer_;
  ConnectOptions options_;
  absl::Duration deadline_;
  Kind best_ = Kind::kTcp;       // that both have
  std::vector<Endpoint> order_;  // as tried
  size_t tried_ = 0;
  std::vector<Failure> failures_;
};

}  // namespace gleaner::transport::any
