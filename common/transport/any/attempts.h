// Attempts holds the transports that are tried, one after the other, to make one connection, and the error of each
// failed attempt. Pure. The attempts share the time until the deadline: each gets an equal part of the time that is
// left.
#pragma once

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/transport/endpoint.h"

namespace gleaner::transport::any {

class Attempts {
 public:
  struct Failure {
    Kind kind;
    absl::Status why;
  };

  // Makes an object without attempts, for a connection that was accepted.
  Attempts() = default;
  // `order`: the peer's endpoints, in the order to try them.
  Attempts(std::vector<Endpoint> order, absl::Duration deadline) : order_(std::move(order)), deadline_(deadline) {}

  // Begins the next attempt and returns the endpoint to try; null: none is left.
  const Endpoint* next() { return tried_ < order_.size() ? &order_[tried_++] : nullptr; }
  // Returns the time for the attempt that next() began.
  absl::Duration timeout(absl::Duration now) const;
  // Records that the attempt that next() began has failed.
  void fail(absl::Status why) { failures_.push_back({order_[tried_ - 1].kind, std::move(why)}); }

  const std::vector<Failure>& failures() const { return failures_; }
  bool has_failed(Kind kind) const;
  // Returns the failures in one status, with the code of the last one. Needs at least one failure.
  absl::Status all_failed() const;

 private:
  std::vector<Endpoint> order_;
  absl::Duration deadline_;
  size_t tried_ = 0;  // number of elements of order_ that have been tried
  std::vector<Failure> failures_;
};

}  // namespace gleaner::transport::any
