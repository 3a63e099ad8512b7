// Functions that serve a registry as Prometheus text over HTTP at /metrics. The server shares the registry with the
// code that records the metrics.
#pragma once

#include <prometheus/registry.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/address.h"
#include "common/http/server.h"

namespace gleaner::metrics {

// Starts a server. Errors are those of http::Server::start().
absl::StatusOr<std::unique_ptr<http::Server>> serve(const Address& address,
                                                    std::shared_ptr<prometheus::Registry> registry);

// Does the same at `address`, HOST:PORT. Empty: there is to be no server, so returns null.
absl::StatusOr<std::unique_ptr<http::Server>> serve_if_given(const std::string& address,
                                                             std::shared_ptr<prometheus::Registry> registry);

}  // namespace gleaner::metrics
