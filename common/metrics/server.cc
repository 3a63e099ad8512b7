#include "common/metrics/server.h"

#include <prometheus/text_serializer.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace gleaner::metrics {
namespace {

constexpr char kContentType[] = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace

absl::StatusOr<std::unique_ptr<http::Server>> serve(const Address& address,
                                                    std::shared_ptr<prometheus::Registry> registry) {
  std::vector<http::Route> routes = {
      {"GET", "/metrics", [registry = std::move(registry)](const std::string&) {
         const prometheus::TextSerializer serializer;
         return http::Answer{200, serializer.Serialize(registry->Collect()), kContentType};
       }}};
  auto server = http::Server::start({.listen = address}, std::move(routes));
  if (server.ok()) return server;
  return absl::Status(server.status().code(),
                      absl::StrCat("can't serve metrics on ", address.to_string(), ": ", server.status().message()));
}

absl::StatusOr<std::unique_ptr<http::Server>> serve_if_given(const std::string& address,
                                                             std::shared_ptr<prometheus::Registry> registry) {
  if (address.empty()) return nullptr;
  GLN_ASSIGN_OR_RETURN(const Address parsed, Address::parse(address));
  return serve(parsed, std::move(registry));
}

}  // namespace gleaner::metrics
