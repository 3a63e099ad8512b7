#include "common/metrics/server.h"

#include <prometheus/exposer.h>

#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/listening.h"
#include "common/base/status_macros.h"

namespace gleaner::metrics {
namespace {

// The library blocks one thread for each connection that a scraper keeps open, so a single thread would not be enough.
constexpr size_t kThreads = 2;

absl::Status cannot_serve(const Address& address, absl::string_view why) {
  return absl::UnavailableError(absl::StrCat("can't serve metrics on ", address.to_string(), ": ", why));
}

}  // namespace

MetricsServer::MetricsServer(Address address, std::shared_ptr<prometheus::Registry> registry,
                             std::unique_ptr<prometheus::Exposer> exposer, std::unique_ptr<Relay> relay)
    : address_(std::move(address)),
      registry_(std::move(registry)),
      relay_(std::move(relay)),
      exposer_(std::move(exposer)) {}

MetricsServer::~MetricsServer() = default;

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::start(const Address& address,
                                                                    std::shared_ptr<prometheus::Registry> registry) {
  // The exposer gives no reason for a failure, and Debian's civetweb below it can't listen on IPv6.
  absl::StatusOr<Descriptor> listener =
      listen_on({address.host == "localhost" ? "127.0.0.1" : address.host, address.port});
  if (!listener.ok()) return cannot_serve(address, listener.status().message());
  GLN_ASSIGN_OR_RETURN(Address bound, local_address(*listener));
  const bool is_relayed = bound.host.find(':') != std::string::npos;
  if (!is_relayed) listener->reset();
  try {
    const Address exposed = is_relayed ? Address{"127.0.0.1", 0} : Address{bound.host, address.port};
    auto exposer = std::make_unique<prometheus::Exposer>(exposed.to_string(), kThreads);
    exposer->RegisterCollectable(registry);
    const std::vector<int> ports = exposer->GetListeningPorts();
    if (ports.empty()) return cannot_serve(address, "the HTTP server has no port");
    const auto port = static_cast<uint16_t>(ports.front());
    std::unique_ptr<Relay> relay;
    if (is_relayed) {
      GLN_ASSIGN_OR_RETURN(relay, Relay::start(*std::move(listener), port));
    } else {
      bound.port = port;
    }
    return std::unique_ptr<MetricsServer>(
        new MetricsServer(std::move(bound), std::move(registry), std::move(exposer), std::move(relay)));
  } catch (const std::exception& error) {
    return cannot_serve(address, error.what());
  }
}

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::start_if_given(
    const std::string& address, std::shared_ptr<prometheus::Registry> registry) {
  if (address.empty()) return nullptr;
  GLN_ASSIGN_OR_RETURN(const Address parsed, Address::parse(address));
  return start(parsed, std::move(registry));
}

}  // namespace gleaner::metrics
