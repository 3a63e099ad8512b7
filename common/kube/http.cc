#include "common/kube/http.h"

#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "common/base/status_macros.h"
#include "common/kube/exec_source.h"
#include "common/kube/http_config.h"
#include "common/kube/process.h"
#include "common/kube/running_requests.h"
#include "common/kube/token.h"

namespace gleaner::kube {
namespace {

constexpr size_t kMaxErrorBody = size_t{64} << 10;
constexpr absl::Duration kAtOnce = absl::Seconds(1);  // a broken kept-alive connection shows within this time
constexpr int kUnauthorized = 401;
constexpr absl::Duration kSettle = absl::Seconds(2);  // longest wait for abandoned requests to end

using web::http::http_request;
using web::http::http_response;
using web::http::client::http_client;

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

// Holds the values by which a request authenticates itself.
struct Identity {
  std::string token;        // empty: none
  ExecSource::Shared exec;  // null: the credentials have no command
};

// Holds cpprestsdk's clients for requests and for streams. Each has kept-alive connections, which present the client
// certificate of `exec`.
struct Connections {
  Connections(const Http::Options& options, const ExecSource::Shared& exec)
      : certificate(exec == nullptr ? "" : exec->certificate),
        calls(options.credentials.server, make_http_config(options.credentials, exec, options.timeout)),
        streams(options.credentials.server, make_http_config(options.credentials, exec, options.stall_timeout)) {}

  const std::string certificate;
  http_client calls;
  http_client streams;
};

}  // namespace

struct Http::Parts {
  Parts(const Clock& a_clock, Options an_options)
      : clock(a_clock),
        options(std::move(an_options)),
        server(describe_server(options.credentials)),
        token(options.credentials.token, options.credentials.token_file),
        connections(std::make_shared<Connections>(options, nullptr)) {
    if (options.credentials.exec) exec.emplace(clock, *options.credentials.exec);
  }
  ~Parts() {
    requests.wait(kSettle);
    drain_cpprest_threads(kSettle);
  }

  absl::StatusOr<Identity> identify();
  // Passes an identity to `send`. If the server refuses the credential of a command, sends once more with a new one.
  absl::StatusOr<Response> send_identified(const std::function<absl::StatusOr<Response>(const Identity&)>& send);
  // Returns connections that present the certificate of `identity`. New ones replace those of an older certificate.
  std::shared_ptr<Connections> connections_for(const Identity& identity) ABSL_LOCKS_EXCLUDED(mutex);
  http_request make_request(const Request& request, const std::string& bearer) const;
  absl::StatusOr<Response> call(const Request& request, const Identity& identity, absl::Duration timeout,
                                Cancellation* cancel);
  // Sends one request and waits for its answer. A DeadlineExceeded has no message.
  absl::StatusOr<Response> exchange(const Request& request, const Identity& identity, absl::Duration timeout,
                                    Cancellation* cancel);
  absl::StatusOr<Response> stream(const Request& request, const Identity& identity, Cancellation* cancel,
                                  Cancellation* other_cancel, const std::function<bool(absl::string_view)>& on_chunk);
  absl::Status enter(absl::Duration timeout, Cancellation* cancel) ABSL_LOCKS_EXCLUDED(mutex);
  void leave() ABSL_LOCKS_EXCLUDED(mutex);
  bool has_room() const ABSL_SHARED_LOCKS_REQUIRED(mutex) { return running < options.in_flight; }

  const Clock& clock;
  const Options options;
  const std::string server;  // for messages
  TokenSource token;
  std::optional<ExecSource> exec;
  RunningRequests requests;
  absl::Mutex mutex;
  std::shared_ptr<Connections> connections ABSL_GUARDED_BY(mutex);
  uint32_t running ABSL_GUARDED_BY(mutex) = 0;
};

absl::StatusOr<Identity> Http::Parts::identify() {
  Identity identity;
  if (exec) {
    GLN_ASSIGN_OR_RETURN(identity.exec, exec->get());
    identity.token = identity.exec->token;
  } else {
    GLN_ASSIGN_OR_RETURN(identity.token, token.get());
  }
  return identity;
}

absl::StatusOr<Http::Response> Http::Parts::send_identified(
    const std::function<absl::StatusOr<Response>(const Identity&)>& send) {
  GLN_ASSIGN_OR_RETURN(Identity identity, identify());
  auto response = send(identity);
  if (!exec || !response.ok() || response->status != kUnauthorized) return response;
  exec->drop(identity.exec);
  GLN_ASSIGN_OR_RETURN(identity, identify());
  return send(identity);
}

std::shared_ptr<Connections> Http::Parts::connections_for(const Identity& identity) {
  const std::string certificate = identity.exec == nullptr ? "" : identity.exec->certificate;
  absl::MutexLock lock(&mutex);
  if (connections->certificate != certificate) connections = std::make_shared<Connections>(options, identity.exec);
  return connections;
}

http_request Http::Parts::make_request(const Request& request, const std::string& bearer) const {
  http_request made(request.method);
  made.set_request_uri(web::uri(request.target));
  made.headers().add("Accept", "application/json");
  made.headers().add("User-Agent", options.user_agent);
  if (!bearer.empty()) made.headers().add("Authorization", absl::StrCat("Bearer ", bearer));
  // cpprestsdk takes the name for SNI and for the check of the server's certificate from this header.
  if (const auto& name = options.credentials.tls_server_name; !name.empty()) made.headers().add("Host", name);
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
  GLN_RETURN_IF_ERROR(proxy_of(options.credentials).status());
  try {
    return std::unique_ptr<Http>(new Http(std::make_unique<Parts>(clock, std::move(options))));
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("the API server's URL '", server, "': ", error.what()));
  }
}

absl::StatusOr<Http::Response> Http::call(const Request& request, absl::Duration timeout, Cancellation* cancel) {
  return parts_->send_identified(
      [&](const Identity& identity) { return parts_->call(request, identity, timeout, cancel); });
}

absl::StatusOr<Http::Response> Http::stream(const Request& request, Cancellation* cancel, Cancellation* other_cancel,
                                            const std::function<bool(absl::string_view)>& on_chunk) {
  return parts_->send_identified(
      [&](const Identity& identity) { return parts_->stream(request, identity, cancel, other_cancel, on_chunk); });
}

absl::StatusOr<Http::Response> Http::Parts::call(const Request& request, const Identity& identity,
                                                 absl::Duration timeout, Cancellation* cancel) {
  const absl::Duration deadline = clock.since_start() + timeout;
  GLN_RETURN_IF_ERROR(enter(timeout, cancel));
  const absl::Cleanup on_return = [this] { leave(); };
  // After a restart of the server every kept-alive connection is broken, and cpprestsdk only finds out by using it. So
  // a call that fails at once tries the next connection; there are at most as many as calls in flight. Sending a
  // request twice is harmless (client.h).
  absl::StatusOr<Response> response = absl::UnknownError("");
  for (uint32_t attempt = 0; attempt <= options.in_flight; ++attempt) {
    const absl::Duration start = clock.since_start();
    response = exchange(request, identity, deadline - start, cancel);
    const bool at_once = clock.since_start() - start < kAtOnce;
    if (!absl::IsUnavailable(response.status()) || !at_once || never_connected(response.status())) break;
  }
  if (absl::IsDeadlineExceeded(response.status())) {
    return absl::DeadlineExceededError(
        absl::StrCat(request.method, " ", server, ": no answer within ", absl::FormatDuration(timeout)));
  }
  return response;
}

absl::StatusOr<Http::Response> Http::Parts::exchange(const Request& request, const Identity& identity,
                                                     absl::Duration timeout, Cancellation* cancel) {
  auto exchange = std::make_shared<Exchange>();
  pplx::cancellation_token_source source;
  const Cancellation::Registration registration(cancel, [exchange, source] {
    exchange->finish(absl::CancelledError("cancelled"));
    source.cancel();
  });
  try {
    auto response = std::make_shared<Response>();
    connections_for(identity)
        ->calls.request(make_request(request, identity.token), source.get_token())
        .then([response](const http_response& answer) {
          response->status = answer.status_code();
          return answer.extract_utf8string(/*ignore_content_type=*/true);
        })
        .then([exchange, response, running = requests.begin(), method = request.method,
               server = server](const pplx::task<std::string>& body) {
          try {
            response->body = body.get();
            exchange->finish(std::move(*response));
          } catch (const std::exception& error) {
            exchange->finish(transport_error(method, server, error.what()));
          }
        });
  } catch (const std::exception& error) {
    return transport_error(request.method, server, error.what());
  }
  if (!exchange->wait(timeout)) {
    exchange->finish(absl::DeadlineExceededError(""));
    source.cancel();
  }
  return exchange->take();
}

absl::StatusOr<Http::Response> Http::Parts::stream(const Request& request, const Identity& identity,
                                                   Cancellation* cancel, Cancellation* other_cancel,
                                                   const std::function<bool(absl::string_view)>& on_chunk) {
  pplx::cancellation_token_source source;
  const auto stop = [source] { source.cancel(); };
  const Cancellation::Registration registration(cancel, stop);
  const Cancellation::Registration other_registration(other_cancel, stop);
  const absl::Cleanup abandon = stop;  // without this cpprestsdk goes on reading into memory
  Response response;
  absl::Duration last_sign = absl::InfiniteDuration();  // infinite until the answer begins
  try {
    const pplx::task<http_response> opening =
        connections_for(identity)->streams.request(make_request(request, identity.token), source.get_token());
    keep_until_ended(opening, requests.begin());
    if (!wait_for(opening, options.timeout)) {
      return transport_error(request.method, server,
                             absl::StrCat("no answer within ", absl::FormatDuration(options.timeout)));
    }
    const http_response answer = opening.get();
    last_sign = clock.since_start();
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
      last_sign = clock.since_start();
      if (!drain(buffer, sink)) break;
    }
    return response;
  } catch (const std::exception& error) {
    const bool cancelled =
        (cancel != nullptr && cancel->cancelled()) || (other_cancel != nullptr && other_cancel->cancelled());
    if (cancelled) return absl::CancelledError("cancelled");
    const absl::Duration silence = clock.since_start() - last_sign;
    if (silence >= options.stall_timeout * 0.9) {
      return absl::DeadlineExceededError(
          absl::StrCat(request.method, " ", server, ": silent for ", absl::FormatDuration(silence)));
    }
    return transport_error(request.method, server, error.what());
  }
}

}  // namespace gleaner::kube
