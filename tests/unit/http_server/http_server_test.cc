// Tests of the HTTP server over real sockets: its answers byte by byte, also to peers that violate the protocol.
#include "common/kube/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <stdexcept>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/base/listening.h"
#include "common/kube/process.h"
#include "tests/held_port.h"
#include "tests/loopback6.h"

namespace gleaner::kube {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

constexpr size_t kMaxBody = 1000;

class Peer {
 public:
  explicit Peer(const Address& address) : Peer(resolve(address).value().front()) {}
  explicit Peer(const SocketAddress& target)
      : socket_(::socket(target.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    connected_ = ::connect(socket_, reinterpret_cast<const sockaddr*>(&target.address), target.size) == 0;
    const timeval deadline{.tv_sec = 60, .tv_usec = 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof deadline);
    ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &deadline, sizeof deadline);
  }
  ~Peer() { ::close(socket_); }
  bool connected() const { return connected_; }
  bool send(absl::string_view text) {
    while (!text.empty()) {
      const ssize_t sent = ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      text.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }
  // Reads until the server closes the connection.
  std::string receive() {
    std::string answer, piece(4096, '\0');
    for (ssize_t got = 0; (got = ::recv(socket_, piece.data(), piece.size(), 0)) > 0;) {
      answer.append(piece, 0, static_cast<size_t>(got));
    }
    return answer;
  }

 private:
  const int socket_;
  bool connected_ = false;
};

std::string ask(const Address& address, absl::string_view head, absl::string_view body = "") {
  Peer peer(address);
  EXPECT_TRUE(peer.connected());
  peer.send(absl::StrCat(head, " HTTP/1.1\r\nHost: test\r\nConnection: close\r\nContent-Length: ", body.size(),
                         "\r\n\r\n", body));
  return peer.receive();
}

class Server : public testing::Test {
 protected:
  static void SetUpTestSuite() { prepare_process(); }
  Server() {
    std::vector<HttpServer::Route> routes = health_routes([this] { return ready_.load() ? "" : "no nodes yet"; });
    routes.push_back({"POST", "/echo", [](const std::string& body) { return HttpAnswer{200, body}; }});
    routes.push_back({"POST", "/throw", [](const std::string&) -> HttpAnswer { throw std::runtime_error("oh"); }});
    routes.push_back({"POST", "/slow", [this](const std::string&) {
                        ++slow_;
                        absl::SleepFor(absl::Milliseconds(300));
                        return HttpAnswer{200, "done"};
                      }});
    auto server =
        HttpServer::start({.listen = {"127.0.0.1", port_.port()}, .max_body_bytes = kMaxBody}, std::move(routes));
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    address_ = server_->address();
  }
  std::atomic<bool> ready_ = false;
  std::atomic<int> slow_ = 0;
  const HeldPort port_;
  std::unique_ptr<HttpServer> server_;
  Address address_;
};

TEST_F(Server, AnswersByPathAndMethod) {
  EXPECT_NE(address_.port, 0);
  const std::string body(kMaxBody, 'x');
  EXPECT_THAT(ask(address_, "POST /echo", body), AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("application/json"),
                                                       EndsWith(absl::StrCat("\r\n\r\n", body))));
  EXPECT_THAT(ask(address_, "POST /echo?timeout=5s", "a"), AllOf(StartsWith("HTTP/1.1 200"), EndsWith("\r\n\r\na")));
  EXPECT_THAT(ask(address_, "POST /nothing", "a"), AllOf(StartsWith("HTTP/1.1 404"), HasSubstr("/nothing")));
  EXPECT_THAT(ask(address_, "GET /echo"), AllOf(StartsWith("HTTP/1.1 405"), HasSubstr("Allow: POST")));
  EXPECT_THAT(ask(address_, "POST /throw"), AllOf(StartsWith("HTTP/1.1 500"), HasSubstr("oh")));
}

TEST_F(Server, ReadyzReportsReadiness) {
  EXPECT_THAT(ask(address_, "GET /healthz"), AllOf(StartsWith("HTTP/1.1 200"), EndsWith("ok\n")));
  EXPECT_THAT(ask(address_, "GET /readyz"), AllOf(StartsWith("HTTP/1.1 503"), EndsWith("no nodes yet\n")));
  ready_ = true;
  EXPECT_THAT(ask(address_, "GET /readyz"), AllOf(StartsWith("HTTP/1.1 200"), EndsWith("ok\n")));
}

TEST_F(Server, RefusesBodiesTooLargeOrOfUnknownLength) {
  EXPECT_THAT(ask(address_, "POST /echo", std::string(kMaxBody + 1, 'x')),
              AllOf(StartsWith("HTTP/1.1 413"), HasSubstr("1000 bytes"), HasSubstr("Connection: close")));
  Peer peer(address_);
  peer.send("POST /echo HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n");
  EXPECT_THAT(peer.receive(), StartsWith("HTTP/1.1 411"));
}

// ASan keeps freed memory for a while.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
constexpr bool kSanitized = __has_feature(address_sanitizer);
#else
constexpr bool kSanitized = false;
#endif

size_t resident_bytes() {
  std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen("/proc/self/statm", "r"), &std::fclose);
  unsigned long total = 0, resident = 0;
  EXPECT_EQ(std::fscanf(file.get(), "%lu %lu", &total, &resident), 2);
  return resident * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}

TEST_F(Server, DropsARefusedBody) {
  constexpr size_t kBytes = size_t{256} << 20;
  const size_t before = resident_bytes();
  Peer peer(address_);
  peer.send(absl::StrCat("POST /echo HTTP/1.1\r\nHost: test\r\nContent-Length: ", kBytes, "\r\n\r\n"));
  const std::string piece(size_t{1} << 20, 'x');
  for (size_t sent = 0; sent < kBytes && peer.send(piece);) sent += piece.size();
  EXPECT_THAT(peer.receive(), StartsWith("HTTP/1.1 413"));
  if (kSanitized) GTEST_SKIP() << "sanitizers make the used memory meaningless";
  EXPECT_LT(resident_bytes(), before + kBytes / 2);
}

TEST_F(Server, ServesOtherRequestsDuringSlowBodies) {
  std::vector<std::unique_ptr<Peer>> slow;
  for (int i = 0; i < 32; ++i) {  // many more than there are threads
    slow.push_back(std::make_unique<Peer>(address_));
    slow.back()->send("POST /echo HTTP/1.1\r\nHost: test\r\nConnection: close\r\nContent-Length: 5\r\n\r\nab");
  }
  EXPECT_THAT(ask(address_, "POST /echo", "quick"), EndsWith("quick"));
  for (auto& peer : slow) peer->send("cde");
  for (auto& peer : slow) EXPECT_THAT(peer->receive(), EndsWith("\r\n\r\nabcde"));
}

TEST_F(Server, SurvivesGarbageAndVanishingPeers) {
  Peer garbage(address_);
  garbage.send("GARBAGE\r\n\r\n");
  EXPECT_THAT(garbage.receive(), StartsWith("HTTP/1.1 400"));
  for (int i = 0; i < 20; ++i)
    Peer(address_).send("POST /echo HTTP/1.1\r\nHost: test\r\nContent-Length: 500\r\n\r\nab");
  EXPECT_THAT(ask(address_, "POST /echo", "still"), EndsWith("still"));
}

TEST_F(Server, FinishesRequestsInProgressBeforeItEnds) {
  std::string answer;
  std::thread asking([&] { answer = ask(address_, "POST /slow"); });
  while (slow_ == 0) absl::SleepFor(absl::Milliseconds(1));
  server_ = nullptr;
  asking.join();
  EXPECT_THAT(answer, AllOf(StartsWith("HTTP/1.1 200"), EndsWith("done")));
  EXPECT_FALSE(Peer(address_).connected());
}

TEST_F(Server, ServesIPv6) {
  SKIP_WITHOUT_LOOPBACK6();
  for (const char* host : {"::1", "::"}) {
    std::vector<HttpServer::Route> routes = health_routes([] { return ""; });
    routes.push_back({"POST", "/echo", [](const std::string& body) { return HttpAnswer{200, body}; }});
    const auto server = HttpServer::start({.listen = {host, 0}}, std::move(routes));
    ASSERT_TRUE(server.ok()) << server.status();
    const Address address = (*server)->address();
    EXPECT_EQ(address.host, host);
    EXPECT_THAT(ask(address, "GET /readyz"), AllOf(StartsWith("HTTP/1.1 200"), EndsWith("ok\n")));
    const std::string body(200'000, 'x');
    EXPECT_THAT(ask(address, "POST /echo", body), EndsWith(absl::StrCat("\r\n\r\n", body)));
    EXPECT_THAT(HttpServer::start({.listen = address}, {}).status().message(), HasSubstr("the port is in use"));
  }
}

TEST_F(Server, ServesNamesOnAnyPort) {
  const auto server = HttpServer::start({.listen = {"localhost", 0}}, health_routes([] { return ""; }));
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_THAT(ask((*server)->address(), "GET /healthz"), StartsWith("HTTP/1.1 200"));
}

TEST_F(Server, AnAddressOfAnotherMachineIsAnErrorThatSaysSo) {
  for (const char* host : {"192.0.2.1", "2001:db8::2"}) {
    const absl::Status status = HttpServer::start({.listen = {host, 0}}, {}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(status.message(), AllOf(HasSubstr(host), testing::Not(HasSubstr("port is in use"))));
  }
}

TEST_F(Server, AUsedPortIsAnError) {
  const auto second = HttpServer::start({.listen = address_}, {});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(second.status().message(), HasSubstr(address_.to_string()));
}

}  // namespace
}  // namespace gleaner::kube
