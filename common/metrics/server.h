// Serves a registry as Prometheus text over HTTP at /metrics. The registry is the caller's; whoever records gets it by
// reference.
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
  // Serves until destroyed, on a thread of its own. Port 0: the system picks one. `address.host` is an IP address or
  // localhost. Unavailable: port in use, or not an address of this machine.
  static absl::StatusOr<std::unique_ptr<MetricsServer>> start(const Address& address,
                                                              std::shared_ptr<prometheus::Registry> registry);
  ~MetricsServer();

  Address address() const { return address_; }  // with the port in use

 private:
  MetricsServer(Address address, std::shared_ptr<prometheus::Registry> registry,
                std::unique_ptr<prometheus::Exposer> exposer);

  const Address address_;
  const std::shared_ptr<prometheus::Registry> registry_;  // the exposer only refers to it
  const std::unique_ptr<prometheus::Exposer> exposer_;
};

}  // namespace gleaner::metrics
