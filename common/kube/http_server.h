// A small HTTP server: handlers by method and path, for the scheduler's calls and for /healthz and /readyz.
//
// For peers inside the cluster, behind a NetworkPolicy or on loopback: no TLS, no authentication. Handlers run on
// cpprestsdk's threads, several at once (see process.h: four in all), and must not wait for anything; a request's body
// is read before. Answers of the server itself: 404 unknown path, 405 unknown method (Allow says which), 411 a body of
// undeclared length, 413 a body above the limit (the connection ends), 500 a handler threw. cpprestsdk does not show.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/address.h"

namespace gleaner::kube {

struct HttpAnswer {
  int status = 200;
  std::string body;
  std::string content_type = "application/json";
};

class HttpServer {
 public:
  struct Route {
    std::string method;  // GET, POST
    std::string path;    // /filter, exactly; a query is cut off before
    std::function<HttpAnswer(const std::string& body)> handle;
  };
  struct Options {
    Address listen;  // an IP address of this machine, or 0.0.0.0; port 0: the system picks one
    size_t max_body_bytes = size_t{1} << 20;
  };

  // Unavailable: the port is in use, or this is no address of this machine.
  static absl::StatusOr<std::unique_ptr<HttpServer>> start(Options options, std::vector<Route> routes);
  // Takes no more requests, and waits for the handlers that run.
  ~HttpServer();

  Address address() const;  // with the port in use

 private:
  struct Parts;
  explicit HttpServer(std::unique_ptr<Parts> parts);
  const std::unique_ptr<Parts> parts_;
};

// GET /healthz: 200 while the process lives. GET /readyz: 200, or 503 and the reason that `ready` gives (empty: ready).
std::vector<HttpServer::Route> health_routes(std::function<std::string()> ready);

}  // namespace gleaner::kube
