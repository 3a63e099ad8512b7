// MetricsServer serves a registry as Prometheus text over HTTP at /metrics. It shares the registry with the code that
// records the metrics.
#pragma once

#include <prometheus/registry.h>

#include <memory>

#include "absl/status/statusor.h"
#include "common/base/address.h"

namespace prometheus {
class Exposer;
}

namespace gleaner::metrics {

class MetricsServer {
 public:
  // Starts a server, which serves on threads of its own until it is destroyed. Port 0: the system chooses.
  // `address.host` is an IP address or localhost. Unavailable if the port is in use, or the address is not an address
  // of this machine.
  static absl::StatusOr<std::unique_ptr<MetricsServer>> start(const Address& address,
                                                              std::shared_ptr<prometheus::Registry> registry);
  ~MetricsServer();

  Address address() const { return address_; }  // with the actual port

 private:
  MetricsServer(Address address, std::shared_ptr<prometheus::Registry> registry,
                std::unique_ptr<prometheus::Exposer> exposer);

  const Address address_;
  const std::shared_ptr<prometheus::Registry> registry_;  // the exposer holds only a weak reference
  const std::unique_ptr<prometheus::Exposer> exposer_;
};

}  // namespace gleaner::metrics
