// Connection serves the requests of one TCP connection, one after the other. Boost.Beast parses requests and writes
// answers; Connection decides when to read, which requests to refuse, and when the time is over.
//
// All functions run on the thread of the connection's Loop, which must outlive the connection.
#pragma once

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <memory>
#include <optional>
#include <string>

#include "common/http/routes.h"

namespace gleaner::http {

class Loop;

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  // `host` is the peer's IP address.
  Connection(Loop& loop, boost::asio::ip::tcp::socket socket, std::string host);

  void start();
  // Closes the connection at once and drops the bytes that are still to be sent.
  void abort();
  // Refuses a request that is being received and does not fit beside the others.
  void refuse_for_room() { refuse(plain(503, "too many large requests at once; try again")); }

  // Give a complete request to the loop, which calls the handler with the body, and take the answer.
  const Handler& handler() const { return *handler_; }
  std::string take_body();
  void on_answer(Answer answer);

  const std::string& host() const { return host_; }
  size_t held_bytes() const { return held_bytes_; }  // of the body or the answer
  bool is_receiving() const { return state_ == State::kReceiving; }
  bool is_answering() const { return state_ == State::kAnswering; }

 private:
  static constexpr size_t kPieceBytes = size_t{16} << 10;
  // Waiting for a request; receiving it; until its answer is sent; waiting for the peer's end after a refusal; ended.
  enum class State { kIdle, kReceiving, kAnswering, kLingering, kEnded };
  using Error = boost::system::error_code;
  using Parser = boost::beast::http::request_parser<boost::beast::http::buffer_body>;
  using Response = boost::beast::http::response<boost::beast::http::string_body>;

  // Returns a completion handler that calls `next` in State `state`, and does nothing in any other.
  auto then(State state, void (Connection::*next)(Error));
  // Aborts the connection after `time`, unless the deadline changes before.
  void set_deadline(absl::Duration time);

  void await_request(absl::Duration time);
  void on_readable(Error error);
  void on_head(Error error);
  void on_continued(Error error);
  void read_body();
  void on_body(Error error);
  void refuse_for(Error error);
  void refuse(Answer answer);
  void send(Answer answer, bool close);
  void on_sent(Error error);
  void linger();
  void on_lingering(Error error);
  void hold(size_t bytes);
  void release();
  void end();

  Loop& loop_;
  boost::asio::ip::tcp::socket socket_;
  const std::string host_;
  boost::asio::steady_timer deadline_;
  boost::beast::flat_buffer buffer_;  // received bytes that no request has taken yet
  State state_ = State::kIdle;
  std::optional<Parser> parser_;
  const Handler* handler_ = nullptr;
  std::array<char, kPieceBytes> piece_;  // of a body
  size_t body_limit_ = 0;
  std::string body_;
  size_t held_bytes_ = 0;
  std::optional<Response> response_;
  boost::beast::http::response<boost::beast::http::empty_body> continue_;
};

}  // namespace gleaner::http
