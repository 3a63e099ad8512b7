// Loop is the state of a server's I/O thread: its listening socket and its connections.
//
// Threads: run() runs on the I/O thread, run_handlers() on the thread of handlers. close() may be called by any thread.
// The other functions are for connections, on the I/O thread.
#pragma once

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <list>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/base/descriptor.h"
#include "common/http/limits.h"
#include "common/http/routes.h"

namespace gleaner::http {

class Connection;

class Loop {
 public:
  Loop(Limits limits, Routes routes);

  // Takes the listening socket, before run() is called.
  absl::Status listen(Descriptor listener);
  // Serves until close() was called and all answers in progress are sent.
  void run();
  // Calls handlers until run() has returned.
  void run_handlers() { handlers_.run(); }
  // Stops accepting and reading requests.
  void close();

  boost::asio::io_context& context() { return context_; }
  const Limits& limits() const { return limits_; }
  const Routes& routes() const { return routes_; }
  bool is_closing() const { return closing_; }
  // Calls the handler of the connection's request on the thread of handlers, after those of earlier requests, and gives
  // the answer to the connection.
  void call(std::shared_ptr<Connection> connection);
  // Makes `connection` the last one of its host to leave its place to a new peer.
  void touch(const Connection& connection);
  void remove(const Connection& connection);
  // Counts bytes that `connection` holds, and makes room for them by ending connections that hold more than their
  // share: perhaps `connection` while it receives, never while it sends.
  void hold(Connection& connection, size_t bytes);
  void release(size_t bytes) { held_bytes_ -= bytes; }

 private:
  using Connections = std::list<std::shared_ptr<Connection>>;

  void accept();
  void accept_later();
  void admit(Descriptor peer, const std::string& host);
  std::shared_ptr<Connection> next_to_leave() const;
  void call_next();
  void on_called(Connection& connection, size_t body_bytes, Answer answer);
  void begin_to_close();

  const Limits limits_;
  const Routes routes_;
  boost::asio::io_context context_, handlers_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> more_calls_;
  boost::asio::ip::tcp::acceptor acceptor_;
  boost::asio::steady_timer timer_;  // until the next try to accept, and when closing, until connections are aborted
  Connections connections_;          // by the time of their last request, oldest first
  size_t held_bytes_ = 0;            // by connections and the call in progress
  std::deque<std::shared_ptr<Connection>> waiting_;  // for a call of their handlers, in this order
  bool calling_ = false;
  std::atomic<bool> closing_ = false;
};

}  // namespace gleaner::http
