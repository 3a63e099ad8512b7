#include "common/kube/http_server.h"

#include <cpprest/http_listener.h>

#include <exception>
#include <map>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/listening.h"
#include "common/base/relay.h"
#include "common/base/status_macros.h"

namespace gleaner::kube {
namespace {

using web::http::http_request;
using web::http::http_response;
using web::http::experimental::listener::http_listener;

// cpprestsdk does not tell which port the system chose. So start() first finds a free port with a socket of its own.
// Another process may take that port in between; start() then tries another port.
constexpr int kPortAttempts = 8;

// By path, then by method.
using Routes = std::map<std::string, std::map<std::string, std::function<HttpAnswer(const std::string&)>>>;

HttpAnswer refusal(int status, absl::string_view why) {
  return {status, absl::StrCat(why, "\n"), "text/plain; charset=utf-8"};
}

HttpAnswer call(const std::function<HttpAnswer(const std::string&)>& handle, const std::string& body) {
  try {
    return handle(body);
  } catch (const std::exception& error) {
    return refusal(500, absl::StrCat("internal error: ", error.what()));
  }
}

// Reads and drops the bytes that the peer still sends. cpprestsdk can't be told to stop reading, and would keep them in
// memory.
void discard(const concurrency::streams::streambuf<uint8_t>& of) {
  auto body = of;
  body.getc().then([body](const pplx::task<int>& next) mutable {
    try {
      if (next.get() == concurrency::streams::streambuf<uint8_t>::traits::eof()) return;
      uint8_t* data = nullptr;
      for (size_t bytes = 0; body.in_avail() > 0 && body.acquire(data, bytes) && bytes > 0;) body.release(data, bytes);
    } catch (const std::exception&) {
      return;  // the connection is gone
    }
    discard(body);
  });
}

// Holds the state that running requests need. Each request shares the ownership of it until its answer is sent, which
// may be after the server was destroyed. Every request counts as running until then, also a refused one: cpprestsdk
// closes connections from the thread that ends the server, and their sockets are not safe for a second thread that
// still writes an answer.
class Dispatcher {
 public:
  Dispatcher(Routes routes, size_t max_body_bytes) : routes_(std::move(routes)), max_body_bytes_(max_body_bytes) {}

  void on_request(const std::shared_ptr<Dispatcher>& self, const http_request& request) ABSL_LOCKS_EXCLUDED(mutex_) {
    const bool is_closing = enter();
    const pplx::task<void> answered =
        is_closing ? reply_and_close(request, refusal(503, "going away")) : respond(self, request);
    answered.then([self] { self->leave(); });
  }

  // Waits until no handler runs and all answers are sent, for at most 5 s; no handler starts any more. Answers sent
  // meanwhile end their connections.
  void drain() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    closing_ = true;
    const auto idle = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return running_ == 0; };
    // The wait is limited because a peer may never send the rest of a body. The handler of such a request has not
    // started.
    mutex_.AwaitWithTimeout(absl::Condition(&idle), absl::Seconds(5));
  }

 private:
  // Returns a task that ends when the answer is sent, or can't be because the peer is gone. So do the functions below.
  pplx::task<void> respond(const std::shared_ptr<Dispatcher>& self, http_request request) {
    const std::string path = web::uri::decode(request.relative_uri().path());
    const auto methods = routes_.find(path);
    if (methods == routes_.end()) return reply_and_close(request, refusal(404, absl::StrCat("no such path: ", path)));
    const auto handler = methods->second.find(request.method());
    if (handler == methods->second.end()) return refuse_method(request, methods->second);
    const bool has_length = request.headers().has("Content-Length");
    if (request.method() == "POST" && !has_length) {
      return reply_and_close(request, refusal(411, "expected a Content-Length"));
    }
    if (has_length && request.headers().content_length() > max_body_bytes_) {
      return reply_and_close(request, refusal(413, absl::StrCat("expected at most ", max_body_bytes_, " bytes")));
    }
    return request.extract_utf8string(true).then(
        [self, request, handle = &handler->second](const pplx::task<std::string>& body) {
          return self->on_body(request, *handle, body);
        });
  }

  static pplx::task<void> reply(const http_request& request, const HttpAnswer& answer, bool close = false) {
    http_response response(static_cast<web::http::status_code>(answer.status));
    // Passed as bytes: cpprestsdk's streams of char make casts that UBSan rejects.
    response.set_body(std::vector<unsigned char>(answer.body.begin(), answer.body.end()));
    response.headers().set_content_type(answer.content_type);
    if (close) response.headers().add("Connection", "close");
    return send(request, response);
  }

  static pplx::task<void> send(const http_request& request, const http_response& response) {
    return request.reply(response).then([](const pplx::task<void>& sent) {
      try {
        sent.get();
      } catch (const std::exception&) {
        return;
      }
    });
  }

  // Answers without using the request's body, and closes the connection.
  static pplx::task<void> reply_and_close(const http_request& request, const HttpAnswer& answer) {
    pplx::task<void> sent = reply(request, answer, true);
    discard(request.body().streambuf());
    return sent;
  }

  static pplx::task<void> refuse_method(
      const http_request& request,
      const std::map<std::string, std::function<HttpAnswer(const std::string&)>>& methods) {
    http_response response(405);
    response.headers().add("Allow", absl::StrJoin(methods, ", ", [](std::string* out, const auto& method) {
                             absl::StrAppend(out, method.first);
                           }));
    pplx::task<void> sent = send(request, response);
    discard(request.body().streambuf());
    return sent;
  }

  pplx::task<void> on_body(const http_request& request, const std::function<HttpAnswer(const std::string&)>& handle,
                           const pplx::task<std::string>& body) ABSL_LOCKS_EXCLUDED(mutex_) {
    std::string text;
    std::optional<HttpAnswer> refused;
    try {
      text = body.get();
    } catch (const std::exception& error) {
      refused = refusal(400, absl::StrCat("the body did not arrive: ", error.what()));
    }
    if (!refused.has_value() && is_closing()) refused = refusal(503, "going away");
    if (refused.has_value()) return reply_and_close(request, *refused);
    const HttpAnswer answer = call(handle, text);
    return reply(request, answer, is_closing());
  }

  // Returns whether the server is closing.
  bool enter() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    ++running_;
    return closing_;
  }
  void leave() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    --running_;
  }
  bool is_closing() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return closing_;
  }

  const Routes routes_;
  const size_t max_body_bytes_;
  absl::Mutex mutex_;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  int running_ ABSL_GUARDED_BY(mutex_) = 0;
};

absl::StatusOr<std::unique_ptr<http_listener>> open(const Address& address,
                                                    const std::shared_ptr<Dispatcher>& dispatcher) {
  try {
    auto listener = std::make_unique<http_listener>(web::uri(absl::StrCat("http://", address.to_string())));
    listener->support([dispatcher](const http_request& request) { dispatcher->on_request(dispatcher, request); });
    for (const char* method : {"GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE"}) {
      listener->support(method,
                        [dispatcher](const http_request& request) { dispatcher->on_request(dispatcher, request); });
    }
    listener->open().wait();
    return listener;
  } catch (const std::exception& error) {
    return absl::UnavailableError(absl::StrCat("can't listen on ", address.to_string(), ": ", error.what()));
  }
}

}  // namespace

struct HttpServer::Parts {
  Address address;
  std::shared_ptr<Dispatcher> dispatcher;
  std::unique_ptr<http_listener> listener;
  std::unique_ptr<Relay> relay;  // null: `listener` itself listens on `address`
};

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::start(Options options, std::vector<Route> routes) {
  Routes by_path;
  for (Route& route : routes) by_path[route.path][route.method] = std::move(route.handle);
  auto parts = std::make_unique<Parts>();
  parts->dispatcher = std::make_shared<Dispatcher>(std::move(by_path), options.max_body_bytes);
  Address wanted = options.listen;
  if (wanted.host == "localhost") wanted.host = "127.0.0.1";
  absl::Status failure;
  for (int attempt = 0; attempt < (wanted.port == 0 ? kPortAttempts : 1); ++attempt) {
    absl::StatusOr<Descriptor> listener = listen_on(wanted);
    if (!listener.ok()) return absl::UnavailableError(listener.status().message());
    GLN_ASSIGN_OR_RETURN(parts->address, local_address(*listener));
    if (parts->address.host.find(':') != std::string::npos)
      return start_relayed(std::move(parts), *std::move(listener));
    listener->reset();
    auto opened = open(parts->address, parts->dispatcher);
    if (opened.ok()) {
      parts->listener = *std::move(opened);
      return std::unique_ptr<HttpServer>(new HttpServer(std::move(parts)));
    }
    failure = opened.status();
  }
  return failure;
}

// Serves IPv6: cpprestsdk takes the first colon of an address for the one before the port.
absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::start_relayed(std::unique_ptr<Parts> parts,
                                                                      Descriptor listener) {
  absl::Status failure;
  for (int attempt = 0; attempt < kPortAttempts; ++attempt) {
    GLN_ASSIGN_OR_RETURN(Descriptor free, listen_on({"127.0.0.1", 0}));
    GLN_ASSIGN_OR_RETURN(const Address inner, local_address(free));
    free.reset();
    auto opened = open(inner, parts->dispatcher);
    if (opened.ok()) {
      parts->listener = *std::move(opened);
      GLN_ASSIGN_OR_RETURN(parts->relay, Relay::start(std::move(listener), inner.port));
      return std::unique_ptr<HttpServer>(new HttpServer(std::move(parts)));
    }
    failure = opened.status();
  }
  return failure;
}

HttpServer::HttpServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

HttpServer::~HttpServer() {
  parts_->dispatcher->drain();
  try {
    parts_->listener->close().wait();
  } catch (const std::exception&) {
    return;  // it was closed already
  }
}

Address HttpServer::address() const { return parts_->address; }

std::vector<HttpServer::Route> health_routes(std::function<std::string()> ready) {
  const auto plain = [](int status, absl::string_view text) {
    return HttpAnswer{status, absl::StrCat(text, "\n"), "text/plain; charset=utf-8"};
  };
  return {{"GET", "/healthz", [plain](const std::string&) { return plain(200, "ok"); }},
          {"GET", "/readyz", [plain, ready = std::move(ready)](const std::string&) {
             const std::string why_not = ready();
             return why_not.empty() ? plain(200, "ok") : plain(503, why_not);
           }}};
}

}  // namespace gleaner::kube
