// Tests of requests that their callers cancel. client_server_test.cc tests the answers of a real API server.
#include "common/kube/http.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/env.h"
#include "common/kube/process.h"

namespace gleaner::kube {
namespace {

// A server that accepts connections and sends nothing but `words`.
class Mute {
 public:
  explicit Mute(std::string words) : words_(std::move(words)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool listening = bind(listener_, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                           listen(listener_, 16) == 0 &&
                           getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0;
    if (!listening) std::_Exit(2);
    url_ = absl::StrCat("http://127.0.0.1:", ntohs(address.sin_port));
    accepter_ = std::thread([this] {
      for (int peer = accept(listener_, nullptr, nullptr); peer >= 0; peer = accept(listener_, nullptr, nullptr)) {
        send(peer, words_.data(), words_.size(), MSG_NOSIGNAL);
      }
    });
  }
  ~Mute() {
    shutdown(listener_, SHUT_RDWR);
    accepter_.join();
    close(listener_);
  }
  Mute(const Mute&) = delete;
  Mute& operator=(const Mute&) = delete;

  const std::string& url() const { return url_; }

 private:
  const std::string words_;
  int listener_ = -1;
  std::string url_;
  std::thread accepter_;
};

std::unique_ptr<Http> client_of(const SystemEnv& env, const std::string& url) {
  Credentials credentials;
  credentials.server = url;
  return *Http::create(*env.env().clock, {.credentials = credentials,
                                          .user_agent = "test",
                                          .timeout = absl::Seconds(20),
                                          .stall_timeout = absl::Seconds(60),
                                          .in_flight = 4});
}

// Runs a process that cancels a request and then ends. If any part of the request still ran then, LeakSanitizer would
// report its memory.
void give_up_and_end(const std::string& words, bool stream) {
  prepare_process();
  const SystemEnv env({"test", LogLevel::kError});
  const Mute server(words);
  {
    const std::unique_ptr<Http> http = client_of(env, server.url());
    Cancellation cancel;
    std::thread canceller([&cancel] {
      absl::SleepFor(absl::Milliseconds(100));
      cancel.cancel();
    });
    const auto outcome =
        stream ? http->stream({.method = "GET", .target = "/"}, &cancel, nullptr, [](auto) { return true; })
               : http->call({.method = "GET", .target = "/"}, absl::Seconds(20), &cancel);
    canceller.join();
    if (!absl::IsCancelled(outcome.status())) std::_Exit(1);
  }
  std::exit(0);
}

class GivenUp : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_P(GivenUp, BeforeTheResponseLeavesNothingBehind) {
  EXPECT_EXIT(give_up_and_end("", GetParam()), testing::ExitedWithCode(0), "");
}

TEST_P(GivenUp, WithinTheAnswerLeavesNothingBehind) {
  const std::string beginning = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{";
  EXPECT_EXIT(give_up_and_end(beginning, GetParam()), testing::ExitedWithCode(0), "");
}

INSTANTIATE_TEST_SUITE_P(Http, GivenUp, testing::Bool(),
                         [](const auto& given) { return given.param ? "stream" : "call"; });

}  // namespace
}  // namespace gleaner::kube
