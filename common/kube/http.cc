#include "common/kube/http.h"

#include <utility>  // missing in Boost 1.74's own includes

// Without this definition cpprestsdk's macro U collides with template parameters.
// NOLINTNEXTLINE(bugprone-reserved-identifier)
#define _TURN_OFF_PLATFORM_STRING
#include <cpprest/http_client.h>
#include <openssl/ssl.h>

#include <boost/asio/ssl/context.hpp>
#include <chrono>
#include <exception>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "common/kube/process.h"
#include "common/kube/token.h"

namespace gleaner::kube {
namespace {

constexpr size_t kMaxErrorBody = size_t{64} << 10;
constexpr absl::Duration kAtOnce = absl::Seconds(1);  // a broken kept-alive connection shows within this time
constexpr absl::Duration kSettle = absl::Seconds(2);  // longest wait for abandoned requests to end

using web::http::http_request;
using web::http::http_response;
using web::http::client::http_client;
using web::http::client::http_client_config;

// Holds the outcome of a call. The first of answer, deadline and cancellation sets it.
class Exchange {
 public:
  void finish(absl::StatusOr<Http::Response> outcome) {
    absl::MutexLock lock(&mutex_);
    if (done_) return;
    outcome_ = std::move(outcome);
    done_ = true;
  }
  // Returns false if there is no outcome within `timeout`.
  bool wait(absl::Duration timeout) {
    absl::MutexLock lock(&mutex_);
    return mutex_.AwaitWithTimeout(absl::Condition(&done_), timeout);
  }
  absl::StatusOr<Http::Response> take() {
    absl::MutexLock lock(&mutex_);
    return std::move(outcome_);
  }

 private:
  absl::Mutex mutex_;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  absl::StatusOr<Http::Response> outcome_ ABSL_GUARDED_BY(mutex_) = absl::UnknownError("");
};

// cpprestsdk's error codes and categories are not reliable. Its messages are reliable for errors before a connection is
// made.
constexpr char kNoConnection[] = "Failed to connect";
constexpr char kNoHandshake[] = "SSL handshake";

absl::Status transport_error(const std::string& method, const std::string& server, absl::string_view what) {
  std::string message = absl::StrCat(method, " ", server, ": ", what);
  if (absl::StrContains(what, kNoHandshake)) {
    absl::StrAppend(&message, " (is the CA the one of this server, and the name in its certificate?)");
  }
  return absl::UnavailableError(message);
}

bool never_connected(const absl::Status& status) {
  return absl::StrContains(status.message(), kNoConnection) || absl::StrContains(status.message(), kNoHandshake);
}

http_client_config make_config(const Credentials& credentials, absl::Duration timeout) {
  http_client_config config;
  config.set_timeout(std::chrono::duration_cast<std::chrono::microseconds>(absl::ToChronoMicroseconds(timeout)));
  config.set_max_redirects(0);
  // Called for every new connection, so that rotated files take effect.
  config.set_ssl_context_callback([credentials](boost::asio::ssl::context& context) {
    if (!credentials.ca_file.empty()) context.load_verify_file(credentials.ca_file);
    SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_2_VERSION);
    if (credentials.client_cert_file.empty()) return;
    context.use_certificate_chain_file(credentials.client_cert_file);
    context.use_private_key_file(credentials.client_key_file, boost::asio::ssl::context::pem);
  });
  return config;
}

// Returns false if the task is not done within `timeout`.
bool wait_for(const pplx::task<http_response>& task, absl::Duration timeout) {
  auto done = std::make_shared<absl::Notification>();
  task.then([done](const pplx::task<http_response>& ended) {
    try {
      ended.wait();
    } catch (const std::exception&) {
      // The caller gets the exception from the task's result. If no continuation observed it, cpprestsdk would
      // terminate the process.
    }
    done->Notify();
  });
  return done->WaitForNotificationWithTimeout(timeout);
}

// Counts the requests that cpprestsdk still processes, including those that their callers have abandoned. The process
// must not end before they do.
class Running {
 public:
  // Counts a request as running until the last copy of the result is destroyed.
  std::shared_ptr<void> begin() {
    const auto end = [state = state_](std::nullptr_t) {
      absl::MutexLock lock(&state->mutex);
      --state->requests;
    };
    absl::MutexLock lock(&state_->mutex);
    ++state_->requests;
    return {nullptr, end};
  }
  // Waits until no request runs, for at most `timeout`.
  void wait(absl::Duration timeout) {
    const auto none = [this] { return state_->requests == 0; };
    absl::MutexLock lock(&state_->mutex);
    state_->mutex.AwaitWithTimeout(absl::Condition(&none), timeout);
  }

 private:
  struct State {
    absl::Mutex mutex;
    uint32_t requests = 0;
  };
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

// Holds `running` until the answer's body has ended, by an error or not.
void keep_until_ended(const pplx::task<http_response>& opening, const std::shared_ptr<void>& running) {
  opening.then([running](const pplx::task<http_response>& opened) {
    try {
      opened.get().content_ready().then([running](const pplx::task<http_response>& ended) {
        try {
          ended.wait();
        } catch (const std::exception&) {
          // The reader of the body gets this exception.
        }
      });
    } catch (const std::exception&) {
      // The caller that waits for the answer gets this exception.
    }
  });
}

// Passes the bytes that are in a stream's buffer to `on_chunk`. Returns false if on_chunk returned false.
template <typename Buffer>
bool drain(Buffer& buffer, const std::function<bool(absl::string_view)>& on_chunk) {
  while (buffer.in_avail() > 0) {
    uint8_t* bytes = nullptr;
    size_t size = 0;
    if (!buffer.acquire(bytes, size) || bytes == nullptr || size == 0) return true;
    const bool more = on_chunk(absl::string_view(reinterpret_cast<const char*>(bytes), size));
    buffer.release(bytes, size);
    if (!more) return false;
  }
  return true;
}

}  // namespace

struct Http::Parts {
  Parts(const Clock& a_clock, Options an_options)
      : clock(a_clock),
        options(std::move(an_options)),
        token(options.credentials.token, options.credentials.token_file),
        calls(options.credentials.server, make_config(options.credentials, options.timeout)),
        streams(options.credentials.server, make_config(options.credentials, options.stall_timeout)) {}
  ~Parts() {
    requests.wait(kSettle);
    drain_cpprest_threads(kSettle);
  }

  absl::StatusOr<http_request> make_request(const Request& request);
  // Sends one request and waits for its answer. A DeadlineExceeded has no message.
  absl::StatusOr<Response> exchange(const Request& request, absl::Duration timeout, Cancellation* cancel);
  absl::Status enter(absl::Duration timeout, Cancellation* cancel) ABSL_LOCKS_EXCLUDED(mutex);
  void leave() ABSL_LOCKS_EXCLUDED(mutex);
  bool has_room() const ABSL_SHARED_LOCKS_REQUIRED(mutex) { return running < options.in_flight; }

  const Clock& clock;
  const Options options;
  TokenSource token;
  http_client calls;
  http_client streams;
  Running requests;
  absl::Mutex mutex;
  uint32_t running ABSL_GUARDED_BY(mutex) = 0;
};

absl::StatusOr<http_request> Http::Parts::make_request(const Request& request) {
  auto bearer = token.get();
  if (!bearer.ok()) return bearer.status();
  http_request made(request.method);
  made.set_request_uri(web::uri(request.target));
  made.headers().add("Accept", "application/json");
  made.headers().add("User-Agent", options.user_agent);
  if (!bearer->empty()) made.headers().add("Authorization", absl::StrCat("Bearer ", *bearer));
  if (!request.body.empty()) {
    // Passed as bytes: from text cpprestsdk makes a stream of char, which it then reads as a stream of unsigned char.
    made.set_body(std::vector<unsigned char>(request.body.begin(), request.body.end()));
    made.headers().set_content_type(request.content_type);
  }
  return made;
}

absl::Status Http::Parts::enter(absl::Duration timeout, Cancellation* cancel) {
  constexpr absl::Duration kLook = absl::Milliseconds(50);  // longest delay until this loop notices a cancellation
  const absl::Duration deadline = clock.since_start() + timeout;
  absl::MutexLock lock(&mutex);
  while (!mutex.AwaitWithTimeout(absl::Condition(this, &Parts::has_room), kLook)) {
    if (cancel != nullptr && cancel->cancelled()) return absl::CancelledError("cancelled before the call began");
    if (clock.since_start() > deadline) {
      return absl::DeadlineExceededError(absl::StrCat("no call could begin within ", absl::FormatDuration(timeout),
                                                      ": ", options.in_flight, " other calls are waiting for answers"));
    }
  }
  ++running;
  return absl::OkStatus();
}

void Http::Parts::leave() {
  absl::MutexLock lock(&mutex);
  --running;
}

Http::Http(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Http::~Http() = default;

absl::StatusOr<std::unique_ptr<Http>> Http::create(const Clock& clock, Options options) {
  const std::string server = options.credentials.server;
  if (!absl::StartsWith(server, "https://") && !absl::StartsWith(server, "http://")) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected a URL of the API server such as https://10.96.0.1:443, not '", server, "'"));
  }
  try {
    return std::unique_ptr<Http>(new Http(std::make_unique<Parts>(clock, std::move(options))));
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("the API server's URL '", server, "': ", error.what()));
  }
}

absl::StatusOr<Http::Response> Http::call(const Request& request, absl::Duration timeout, Cancellation* cancel) {
  const absl::Duration deadline = parts_->clock.since_start() + timeout;
  if (absl::Status entered = parts_->enter(timeout, cancel); !entered.ok()) return entered;
  const absl::Cleanup leave = [this] { parts_->leave(); };
  // After a restart of the server every kept-alive connection is broken, and cpprestsdk only finds out by using it. So
  // a call that fails at once tries the next connection; there are at most as many as calls in flight. Sending a
  // request twice is harmless (client.h).
  absl::StatusOr<Response> response = absl::UnknownError("");
  for (uint32_t attempt = 0; attempt <= parts_->options.in_flight; ++attempt) {
    const absl::Duration start = parts_->clock.since_start();
    response = parts_->exchange(request, deadline - start, cancel);
    const bool at_once = parts_->clock.since_start() - start < kAtOnce;
    if (!absl::IsUnavailable(response.status()) || !at_once || never_connected(response.status())) break;
  }
  if (absl::IsDeadlineExceeded(response.status())) {
    return absl::DeadlineExceededError(absl::StrCat(request.method, " ", parts_->options.credentials.server,
                                                    ": no answer within ", absl::FormatDuration(timeout)));
  }
  return response;
}

absl::StatusOr<Http::Response> Http::Parts::exchange(const Request& request, absl::Duration timeout,
                                                     Cancellation* cancel) {
  auto exchange = std::make_shared<Exchange>();
  pplx::cancellation_token_source source;
  const Cancellation::Registration registration(cancel, [exchange, source] {
    exchange->finish(absl::CancelledError("cancelled"));
    source.cancel();
  });
  try {
    auto made = make_request(request);
    if (!made.ok()) return made.status();
    auto response = std::make_shared<Response>();
    calls.request(*made, source.get_token())
        .then([response](const http_response& answer) {
          response->status = answer.status_code();
          return answer.extract_utf8string(/*ignore_content_type=*/true);
        })
        .then([exchange, response, running = requests.begin(), method = request.method,
               server = options.credentials.server](const pplx::task<std::string>& body) {
          try {
            response->body = body.get();
            exchange->finish(std::move(*response));
          } catch (const std::exception& error) {
            exchange->finish(transport_error(method, server, error.what()));
          }
        });
  } catch (const std::exception& error) {
    return transport_error(request.method, options.credentials.server, error.what());
  }
  if (!exchange->wait(timeout)) {
    exchange->finish(absl::DeadlineExceededError(""));
    source.cancel();
  }
  return exchange->take();
}

absl::StatusOr<Http::Response> Http::stream(const Request& request, Cancellation* cancel, Cancellation* other_cancel,
                                            const std::function<bool(absl::string_view)>& on_chunk) {
  const std::string& server = parts_->options.credentials.server;
  pplx::cancellation_token_source source;
  const auto stop = [source] { source.cancel(); };
  const Cancellation::Registration registration(cancel, stop);
  const Cancellation::Registration other_registration(other_cancel, stop);
  const absl::Cleanup abandon = stop;  // without this cpprestsdk goes on reading into memory
  Response response;
  absl::Duration last_sign = absl::InfiniteDuration();  // infinite until the answer begins
  try {
    auto made = parts_->make_request(request);
    if (!made.ok()) return made.status();
    const pplx::task<http_response> opening = parts_->streams.request(*made, source.get_token());
    keep_until_ended(opening, parts_->requests.begin());
    if (!wait_for(opening, parts_->options.timeout)) {
      return transport_error(request.method, server,
                             absl::StrCat("no answer within ", absl::FormatDuration(parts_->options.timeout)));
    }
    const http_response answer = opening.get();
    last_sign = parts_->clock.since_start();
    response.status = answer.status_code();
    const std::function<bool(absl::string_view)> collect = [&response](absl::string_view chunk) {
      absl::StrAppend(&response.body, chunk.substr(0, kMaxErrorBody - response.body.size()));
      return response.body.size() < kMaxErrorBody;
    };
    const auto& sink = response.status == 200 ? on_chunk : collect;
    auto buffer = answer.body().streambuf();
    // getc() waits for a single byte and throws the error that broke the stream. A larger read would wait until its
    // buffer is full.
    while (buffer.getc().get() != decltype(buffer)::traits::eof()) {
      last_sign = parts_->clock.since_start();
      if (!drain(buffer, sink)) break;
    }
    return response;
  } catch (const std::exception& error) {
    const bool cancelled =
        (cancel != nullptr && cancel->cancelled()) || (other_cancel != nullptr && other_cancel->cancelled());
    if (cancelled) return absl::CancelledError("cancelled");
    const absl::Duration silence = parts_->clock.since_start() - last_sign;
    if (silence >= parts_->options.stall_timeout * 0.9) {
      return absl::DeadlineExceededError(
          absl::StrCat(request.method, " ", server, ": silent for ", absl::FormatDuration(silence)));
    }
    return transport_error(request.method, server, error.what());
  }
}

}  // namespace gleaner::kube
