// HttpServer is a small HTTP server that calls a handler by method and path. It serves the scheduler's calls, /healthz
// and /readyz.
//
// The server is meant for peers inside the cluster, behind a NetworkPolicy or on loopback: it has no TLS and no
// authentication. Handlers run on cpprestsdk's threads (process.h: four in all), several at once, and must not block.
// The request's body is read before the handler runs. The server itself answers 400 if the body does not arrive, 404
// for an unknown path, 405 for an unknown method (with Allow), 411 for a POST without Content-Length, 413 for a body
// above the limit, 500 if a handler throws and 503 while it shuts down. After a 400, 404, 411, 413 or 503 it closes the
// connection. No type of cpprestsdk appears in this header.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/address.h"
#include "common/base/descriptor.h"

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
    std::string path;    // exact path, such as /filter; the query of a request is ignored
    std::function<HttpAnswer(const std::string& body)> handle;
  };
  struct Options {
    Address listen;  // a name or IP address of this machine, or 0.0.0.0, or ::; port 0: the system chooses
    size_t max_body_bytes = size_t{1} << 20;
  };

  // Unavailable, with the reason, if the server can't listen on the address: the port is in use, or this machine has no
  // such address.
  static absl::StatusOr<std::unique_ptr<HttpServer>> start(Options options, std::vector<Route> routes);
  // Stops accepting requests, and waits up to 5 s for running ones.
  ~HttpServer();

  Address address() const;  // with the actual port

 private:
  struct Parts;
  explicit HttpServer(std::unique_ptr<Parts> parts);
  static absl::StatusOr<std::unique_ptr<HttpServer>> start_relayed(std::unique_ptr<Parts> parts, Descriptor listener);
  const std::unique_ptr<Parts> parts_;
};

// Returns the routes GET /healthz (200 while the process lives) and GET /readyz (200 if `ready` returns an empty
// string, else 503 with that string).
std::vector<HttpServer::Route> health_routes(std::function<std::string()> ready);

}  // namespace gleaner::kube
