// MetricsServer serves a registry as Prometheus text over HTTP at /metrics. It shares the registry with the code that
// records the metrics.
#pragma once

#include <prometheus/registry.h>

#include <memory>

#include "absl/status/statusor.h"
#include "common/base/address.h"
#include "common/base/relay.h"

namespace prometheus {
class Exposer;
}

namespace gleaner::metrics {

class MetricsServer {
 public:
  // Starts a server, which serves on threads of its own until it is destroyed. Port 0: the system chooses. The host may
  // be a name, an IPv4 or an IPv6 address; localhost is 127.0.0.1. Unavailable, with the reason, if the server can't
  // listen on the address: the port is in use, or this machine has no such address.
  static absl::StatusOr<std::unique_ptr<MetricsServer>> start(const Address& address,
                                                              std::shared_ptr<prometheus::Registry> registry);
  // Does the same at `address`, HOST:PORT. Empty: there is to be no server, so returns null.
  static absl::StatusOr<std::unique_ptr<MetricsServer>> start_if_given(const std::string& address,
                                                                       std::shared_ptr<prometheus::Registry> registry);
  ~MetricsServer();

  Address address() const { return address_; }  // with the actual port

 private:
  MetricsServer(Address address, std::shared_ptr<prometheus::Registry> registry,
                std::unique_ptr<prometheus::Exposer> exposer, std::unique_ptr<Relay> relay);

  const Address address_;
  const std::shared_ptr<prometheus::Registry> registry_;  // the exposer holds only a weak reference
  const std::unique_ptr<Relay> relay_;  // null: the exposer itself listens on address_; destroyed after the exposer
  const std::unique_ptr<prometheus::Exposer> exposer_;
};

}  // namespace gleaner::metrics
