// Server is a small HTTP server that calls a handler by method and path. It serves the scheduler's calls, /healthz,
// /readyz and /metrics.
//
// The server has no TLS and no authentication. It has two threads: "gln-http" for all connections, and "gln-handler",
// which calls the handlers, one at a time. Peers that are slow, silent or send too much keep neither from others:
// limits.h. A handler gets the request when its body is complete. The server itself answers 400 if the request is not
// HTTP, 404 for an unknown path, 405 for an unknown method (with Allow), 411 for a POST without a length, 413 for a
// body above the limit and for any body of a GET, 431 for headers above the limit, 500 if a handler throws, and 503
// while it shuts down or while other requests take the memory. After all these but a 500 it closes the connection. HEAD
// is answered like GET, without the body. No type of Boost appears in this header.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/address.h"
#include "common/http/limits.h"
#include "common/http/routes.h"

namespace gleaner::http {

class Loop;

class Server {
 public:
  struct Options {
    Address listen;  // a name or IP address of this machine, or 0.0.0.0, or ::; port 0: the system chooses
    Limits limits = {};
  };

  // Unavailable, with the reason, if the server can't listen on the address: the port is in use, or this machine has no
  // such address. ResourceExhausted if the system has no thread or file descriptor left. localhost is loopback_host().
  static absl::StatusOr<std::unique_ptr<Server>> start(Options options, std::vector<Route> routes);
  // Stops accepting requests, drops those that are not complete, and waits for running handlers. Peers have 5 s to take
  // their answers.
  ~Server();

  Address address() const { return address_; }  // with the actual port

 private:
  explicit Server(std::unique_ptr<Loop> loop);

  const std::unique_ptr<Loop> loop_;
  Address address_;
  std::thread io_, handlers_;
};

// Returns the routes GET /healthz (200 while the process lives) and GET /readyz (200 if `ready` returns an empty
// string, else 503 with that string).
std::vector<Route> health_routes(std::function<std::string()> ready);

}  // namespace gleaner::http
