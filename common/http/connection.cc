#include "common/http/connection.h"

#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/http/loop.h"

namespace gleaner::http {

namespace asio = boost::asio;
namespace beast = boost::beast;

namespace {

constexpr absl::Duration kLinger = absl::Seconds(1);  // for a peer that still sends to take the refusal

}  // namespace

Connection::Connection(Loop& loop, asio::ip::tcp::socket socket, std::string host)
    : loop_(loop),
      socket_(std::move(socket)),
      host_(std::move(host)),
      deadline_(loop.context()),
      buffer_(loop.limits().head_bytes + kPieceBytes) {}

auto Connection::then(State state, void (Connection::*next)(Error)) {
  return [self = shared_from_this(), state, next](Error error, size_t = 0) {
    if (self->state_ == state) (self.get()->*next)(error);
  };
}

void Connection::set_deadline(absl::Duration time) {
  deadline_.expires_after(absl::ToChronoNanoseconds(time));
  deadline_.async_wait([self = shared_from_this()](Error error) {
    // A wait that was over before the deadline changed has no error.
    if (!error && self->deadline_.expiry() <= std::chrono::steady_clock::now()) self->abort();
  });
}

void Connection::start() {
  Error ignored;
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  await_request(loop_.limits().request);
}

void Connection::await_request(absl::Duration time) {
  state_ = State::kIdle;
  parser_.emplace();
  parser_->header_limit(static_cast<uint32_t>(loop_.limits().head_bytes));
  parser_->body_limit(std::numeric_limits<uint64_t>::max());  // on_head() has the limits
  set_deadline(time);
  if (buffer_.size() > 0) return on_readable({});
  socket_.async_wait(asio::socket_base::wait_read, then(State::kIdle, &Connection::on_readable));
}

void Connection::on_readable(Error error) {
  if (error) return end();
  state_ = State::kReceiving;
  set_deadline(loop_.limits().request);
  beast::http::async_read_header(socket_, buffer_, *parser_, then(State::kReceiving, &Connection::on_head));
}

void Connection::on_head(Error error) {
  if (error) return refuse_for(error);
  loop_.touch(*this);
  const auto& request = parser_->get();
  const std::string method(request.method_string().data(), request.method_string().size());
  const Routes::Found found = loop_.routes().find(method, {request.target().data(), request.target().size()});
  if (found.handle == nullptr) return refuse(found.refusal);
  body_limit_ = found.takes_body ? loop_.limits().body_bytes : 0;
  const auto length = parser_->content_length();
  if (found.takes_body && !parser_->chunked() && !length) return refuse(plain(411, "expected a Content-Length"));
  if (length.value_or(0) > body_limit_ || (parser_->chunked() && !found.takes_body)) {
    return refuse_for(beast::http::error::body_limit);
  }
  handler_ = found.handle;
  parser_->body_limit(body_limit_);
  if (!beast::iequals(request[beast::http::field::expect], "100-continue")) return read_body();
  continue_ = {beast::http::status::continue_, 11};
  beast::http::async_write(socket_, continue_, then(State::kReceiving, &Connection::on_continued));
}

void Connection::on_continued(Error error) {
  if (error) return end();
  read_body();
}

void Connection::read_body() {
  if (parser_->is_done()) {
    state_ = State::kAnswering;
    deadline_.cancel();
    return loop_.call(shared_from_this());
  }
  auto& piece = parser_->get().body();
  piece.data = piece_.data();
  piece.size = piece_.size();
  beast::http::async_read_some(socket_, buffer_, *parser_, then(State::kReceiving, &Connection::on_body));
}

void Connection::on_body(Error error) {
  if (error && error != beast::http::error::need_buffer) return refuse_for(error);
  const size_t bytes = piece_.size() - parser_->get().body().size;
  body_.append(piece_.data(), bytes);
  hold(bytes);
  if (is_receiving()) read_body();
}

std::string Connection::take_body() {
  held_bytes_ = 0;  // the call holds them from now on
  return std::exchange(body_, {});
}

void Connection::on_answer(Answer answer) {
  if (is_answering()) send(std::move(answer), loop_.is_closing());
}

void Connection::refuse_for(Error error) {
  const bool is_http = error.category() == beast::http::make_error_code(beast::http::error::body_limit).category();
  if (!is_http || error == beast::http::error::end_of_stream || error == beast::http::error::partial_message) {
    return end();  // the peer is gone
  }
  if (error == beast::http::error::body_limit) {
    return refuse(plain(413, absl::StrCat("expected a body of at most ", body_limit_, " bytes")));
  }
  if (error == beast::http::error::header_limit) {
    return refuse(plain(431, absl::StrCat("expected headers of at most ", loop_.limits().head_bytes, " bytes")));
  }
  refuse(plain(400, absl::StrCat("not an HTTP request: ", error.message())));
}

void Connection::refuse(Answer answer) {
  state_ = State::kAnswering;
  send(std::move(answer), true);
}

void Connection::send(Answer answer, bool close) {
  release();
  response_.emplace(static_cast<beast::http::status>(answer.status), 11);
  response_->set(beast::http::field::content_type, answer.content_type);
  if (!answer.allow.empty()) response_->set(beast::http::field::allow, answer.allow);
  response_->body() = std::move(answer.body);
  response_->keep_alive(!close && parser_->get().keep_alive());
  response_->prepare_payload();
  if (parser_->get().method() == beast::http::verb::head) response_->body().clear();
  hold(response_->body().size());
  set_deadline(loop_.limits().answer);
  beast::http::async_write(socket_, *response_, then(State::kAnswering, &Connection::on_sent));
}

void Connection::on_sent(Error error) {
  const bool keep = response_->keep_alive();
  response_.reset();
  release();
  if (error || loop_.is_closing()) return end();
  if (keep) return await_request(loop_.limits().idle);
  if (parser_->is_done()) return end();
  state_ = State::kLingering;
  socket_.shutdown(asio::socket_base::shutdown_send, error);
  set_deadline(kLinger);
  linger();
}

// Drops the bytes that the peer still sends. A socket that is closed with bytes unread makes the peer's system report a
// broken connection, perhaps before the peer has read the refusal.
void Connection::linger() {
  socket_.async_read_some(asio::buffer(piece_), then(State::kLingering, &Connection::on_lingering));
}

void Connection::on_lingering(Error error) {
  if (error) return end();
  linger();
}

void Connection::hold(size_t bytes) {
  held_bytes_ += bytes;
  loop_.hold(*this, bytes);
}

// A write in progress still uses response_, which goes with the connection.
void Connection::release() {
  loop_.release(std::exchange(held_bytes_, 0));
  body_ = {};
}

void Connection::abort() {
  Error ignored;
  socket_.set_option(asio::socket_base::linger(true, 0), ignored);
  end();
}

void Connection::end() {
  if (std::exchange(state_, State::kEnded) == State::kEnded) return;
  release();
  deadline_.cancel();
  Error ignored;
  socket_.close(ignored);
  loop_.remove(*this);
}

}  // namespace gleaner::http
