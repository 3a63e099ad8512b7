#include "common/http/server.h"

#include <boost/system/system_error.hpp>
#include <utility>

#include "common/base/limits.h"
#include "common/base/listening.h"
#include "common/base/own_network.h"
#include "common/base/status_macros.h"
#include "common/base/thread.h"
#include "common/http/loop.h"

namespace gleaner::http {
namespace {

absl::StatusOr<std::unique_ptr<Loop>> make_loop(const Limits& limits, std::vector<Route> routes) {
  try {
    return std::make_unique<Loop>(limits, Routes(std::move(routes)));
  } catch (const boost::system::system_error& error) {
    return exhausted("can't wait for connections", error.code().value());
  }
}

}  // namespace

Server::Server(std::unique_ptr<Loop> loop) : loop_(std::move(loop)) {}

absl::StatusOr<std::unique_ptr<Server>> Server::start(Options options, std::vector<Route> routes) {
  Address wanted = options.listen;
  if (wanted.host == "localhost") wanted.host = loopback_host();
  absl::StatusOr<Descriptor> listener = listen_on(wanted);
  if (!listener.ok()) return absl::UnavailableError(listener.status().message());
  GLN_ASSIGN_OR_RETURN(std::unique_ptr<Loop> loop, make_loop(options.limits, std::move(routes)));
  std::unique_ptr<Server> server(new Server(std::move(loop)));
  GLN_ASSIGN_OR_RETURN(server->address_, local_address(*listener));
  GLN_RETURN_IF_ERROR(server->loop_->listen(*std::move(listener)));
  GLN_ASSIGN_OR_RETURN(server->handlers_,
                       start_thread("gln-handler", [raw = server->loop_.get()] { raw->run_handlers(); }));
  GLN_ASSIGN_OR_RETURN(server->io_, start_thread("gln-http", [raw = server->loop_.get()] { raw->run(); }));
  return server;
}

Server::~Server() {
  loop_->close();
  if (io_.joinable()) {
    io_.join();
  } else {
    loop_->run();  // there is no such thread: this one closes the listener, and lets the other thread end
  }
  if (handlers_.joinable()) handlers_.join();
}

std::vector<Route> health_routes(std::function<std::string()> ready) {
  return {{"GET", "/healthz", [](const std::string&) { return plain(200, "ok"); }},
          {"GET", "/readyz", [ready = std::move(ready)](const std::string&) {
             const std::string why_not = ready();
             return why_not.empty() ? plain(200, "ok") : plain(503, why_not);
           }}};
}

}  // namespace gleaner::http
