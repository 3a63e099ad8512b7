#include "common/metrics/server.h"

#include <prometheus/exposer.h>

#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gleaner::metrics {
namespace {

// The library blocks one thread for each connection that a scraper keeps open, so a single thread would not be enough.
constexpr size_t kThreads = 2;

}  // namespace

MetricsServer::MetricsServer(Address address, std::shared_ptr<prometheus::Registry> registry,
                             std::unique_ptr<prometheus::Exposer> exposer)
    : address_(std::move(address)), registry_(std::move(registry)), exposer_(std::move(exposer)) {}

MetricsServer::~MetricsServer() = default;

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::start(const Address& address,
                                                                    std::shared_ptr<prometheus::Registry> registry) {
  Address bound = address;
  if (bound.host == "localhost") bound.host = "127.0.0.1";
  try {
    auto exposer = std::make_unique<prometheus::Exposer>(bound.to_string(), kThreads);
    exposer->RegisterCollectable(registry);
    const std::vector<int> ports = exposer->GetListeningPorts();
    if (!ports.empty()) bound.port = static_cast<uint16_t>(ports.front());
    return std::unique_ptr<MetricsServer>(new MetricsServer(std::move(bound), std::move(registry), std::move(exposer)));
  } catch (const std::exception& error) {
    return absl::UnavailableError(absl::StrCat("can't serve metrics on ", address.to_string(),
                                               ": the port is in use, or this machine does not have the IP address (",
                                               error.what(), ")"));
  }
}

}  // namespace gleaner::metrics
