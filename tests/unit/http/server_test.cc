// Tests of the HTTP server over real sockets: its answers byte by byte, also to peers that violate the protocol.
#include "common/http/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/held_port.h"
#include "tests/http_peer.h"
#include "tests/loopback6.h"

namespace gleaner::http {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

constexpr size_t kMaxBody = 1000;

std::string ask(const Address& address, absl::string_view head, absl::string_view body = "") {
  HttpPeer peer(address);
  EXPECT_TRUE(peer.connected());
  peer.send(absl::StrCat(head, " HTTP/1.1\r\nHost: test\r\nConnection: close\r\nContent-Length: ", body.size(),
                         "\r\n\r\n", body));
  return peer.receive();
}

class ServerTest : public testing::Test {
 protected:
  ServerTest() {
    std::vector<Route> routes = health_routes([this] { return ready_.load() ? "" : "no nodes yet"; });
    routes.push_back({"POST", "/echo", [](const std::string& body) { return Answer{200, body}; }});
    routes.push_back({"POST", "/throw", [](const std::string&) -> Answer { throw std::runtime_error("oh"); }});
    routes.push_back({"POST", "/slow", [this](const std::string&) {
                        ++slow_;
                        absl::SleepFor(absl::Milliseconds(300));
                        return Answer{200, "done"};
                      }});
    auto server =
        Server::start({.listen = {"127.0.0.1", port_.port()}, .limits = {.body_bytes = kMaxBody}}, std::move(routes));
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    address_ = server_->address();
  }
  std::atomic<bool> ready_ = false;
  std::atomic<int> slow_ = 0;
  const HeldPort port_;
  std::unique_ptr<Server> server_;
  Address address_;
};

TEST_F(ServerTest, AnswersByPathAndMethod) {
  EXPECT_NE(address_.port, 0);
  const std::string body(kMaxBody, 'x');
  EXPECT_THAT(ask(address_, "POST /echo", body), AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("application/json"),
                                                       EndsWith(absl::StrCat("\r\n\r\n", body))));
  EXPECT_THAT(ask(address_, "POST /echo?timeout=5s", "a"), AllOf(StartsWith("HTTP/1.1 200"), EndsWith("\r\n\r\na")));
  EXPECT_THAT(ask(address_, "POST /nothing", "a"), AllOf(StartsWith("HTTP/1.1 404"), HasSubstr("/nothing")));
  EXPECT_THAT(ask(address_, "GET /echo"), AllOf(StartsWith("HTTP/1.1 405"), HasSubstr("Allow: POST")));
  EXPECT_THAT(ask(address_, "POST /throw"), AllOf(StartsWith("HTTP/1.1 500"), HasSubstr("oh")));
}

TEST_F(ServerTest, ReadyzReportsReadiness) {
  EXPECT_THAT(ask(address_, "GET /healthz"), AllOf(StartsWith("HTTP/1.1 200"), EndsWith("ok\n")));
  EXPECT_THAT(ask(address_, "GET /readyz"), AllOf(StartsWith("HTTP/1.1 503"), EndsWith("no nodes yet\n")));
  ready_ = true;
  EXPECT_THAT(ask(address_, "GET /readyz"), AllOf(StartsWith("HTTP/1.1 200"), EndsWith("ok\n")));
}

TEST_F(ServerTest, RefusesBodiesTooLargeOrOfUnknownLength) {
  EXPECT_THAT(ask(address_, "POST /echo", std::string(kMaxBody + 1, 'x')),
              AllOf(StartsWith("HTTP/1.1 413"), HasSubstr("1000 bytes"), HasSubstr("Connection: close")));
  HttpPeer peer(address_);
  peer.send("POST /echo HTTP/1.1\r\nHost: test\r\n\r\n");
  EXPECT_THAT(peer.receive(), StartsWith("HTTP/1.1 411"));
  EXPECT_THAT(ask(address_, "GET /healthz", "a"), StartsWith("HTTP/1.1 413"));
}

TEST_F(ServerTest, TakesChunkedBodies) {
  HttpPeer peer(address_);
  peer.send("POST /echo HTTP/1.1\r\nHost: test\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n");
  peer.send("1\r\na\r\n2;extension=x\r\nbc\r\n0\r\nTrailer: y\r\n\r\n");
  EXPECT_THAT(peer.receive(), AllOf(StartsWith("HTTP/1.1 200"), EndsWith("\r\n\r\nabc")));
}

TEST_F(ServerTest, AsksForABodyThatThePeerHoldsBack) {
  HttpPeer peer(address_);
  peer.send(
      "POST /echo HTTP/1.1\r\nHost: test\r\nConnection: close\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(peer.receive("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  peer.send("abc");
  EXPECT_THAT(peer.receive(), AllOf(StartsWith("HTTP/1.1 200"), EndsWith("\r\n\r\nabc")));
}

TEST_F(ServerTest, AnswersHeadWithoutABody) {
  EXPECT_THAT(ask(address_, "HEAD /healthz"),
              AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("Content-Length: 3\r\n"), EndsWith("\r\n\r\n")));
  EXPECT_THAT(ask(address_, "HEAD /nothing"), AllOf(StartsWith("HTTP/1.1 404"), EndsWith("\r\n\r\n")));
  EXPECT_THAT(ask(address_, "PUT /healthz"), AllOf(StartsWith("HTTP/1.1 405"), HasSubstr("Allow: GET, HEAD\r\n")));
}

TEST_F(ServerTest, ServesManyRequestsOfOneConnection) {
  const std::string request = "POST /echo HTTP/1.1\r\nHost: test\r\nContent-Length: 3\r\n\r\n";
  HttpPeer peer(address_);
  for (const std::string body : {"abc", "def"}) {
    peer.send(request + body);
    EXPECT_THAT(peer.receive(body), StartsWith("HTTP/1.1 200"));
  }
  peer.send(request + "one" + request + "two");  // sent before the first answer
  EXPECT_THAT(peer.receive("two"), HasSubstr("\r\n\r\noneHTTP/1.1 200"));
}

TEST_F(ServerTest, ServesOtherRequestsDuringSlowBodies) {
  std::vector<std::unique_ptr<HttpPeer>> slow;
  for (int i = 0; i < 32; ++i) {  // many more than there are threads
    slow.push_back(std::make_unique<HttpPeer>(address_));
    slow.back()->send("POST /echo HTTP/1.1\r\nHost: test\r\nConnection: close\r\nContent-Length: 5\r\n\r\nab");
  }
  EXPECT_THAT(ask(address_, "POST /echo", "quick"), EndsWith("quick"));
  for (auto& peer : slow) peer->send("cde");
  for (auto& peer : slow) EXPECT_THAT(peer->receive(), EndsWith("\r\n\r\nabcde"));
}

TEST_F(ServerTest, SurvivesGarbageAndVanishingPeers) {
  HttpPeer garbage(address_);
  garbage.send("GARBAGE\r\n\r\n");
  EXPECT_THAT(garbage.receive(), StartsWith("HTTP/1.1 400"));
  for (int i = 0; i < 20; ++i)
    HttpPeer(address_).send("POST /echo HTTP/1.1\r\nHost: test\r\nContent-Length: 500\r\n\r\nab");
  EXPECT_THAT(ask(address_, "POST /echo", "still"), EndsWith("still"));
}

TEST_F(ServerTest, FinishesRequestsInProgressBeforeItEnds) {
  std::string answer;
  std::thread asking([&] { answer = ask(address_, "POST /slow"); });
  while (slow_ == 0) absl::SleepFor(absl::Milliseconds(1));
  server_ = nullptr;
  asking.join();
  EXPECT_THAT(answer, AllOf(StartsWith("HTTP/1.1 200"), EndsWith("done")));
  EXPECT_FALSE(HttpPeer(address_).connected());
}

TEST_F(ServerTest, DropsIncompleteRequestsWhenItEnds) {
  HttpPeer silent(address_), half(address_);
  half.send("POST /echo HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\n\r\nab");
  EXPECT_THAT(ask(address_, "GET /healthz"), StartsWith("HTTP/1.1 200"));
  server_ = nullptr;
  EXPECT_EQ(silent.receive(), "");
  EXPECT_EQ(half.receive(), "");
}

TEST_F(ServerTest, ServesIPv6) {
  SKIP_WITHOUT_LOOPBACK6();
  for (const char* host : {"::1", "::"}) {
    std::vector<Route> routes = health_routes([] { return ""; });
    routes.push_back({"POST", "/echo", [](const std::string& body) { return Answer{200, body}; }});
    const auto server = Server::start({.listen = {host, 0}}, std::move(routes));
    ASSERT_TRUE(server.ok()) << server.status();
    const Address address = (*server)->address();
    EXPECT_EQ(address.host, host);
    EXPECT_THAT(ask(address, "GET /readyz"), AllOf(StartsWith("HTTP/1.1 200"), EndsWith("ok\n")));
    const std::string body(200'000, 'x');
    EXPECT_THAT(ask(address, "POST /echo", body), EndsWith(absl::StrCat("\r\n\r\n", body)));
    EXPECT_THAT(Server::start({.listen = address}, {}).status().message(), HasSubstr("the port is in use"));
  }
}

TEST_F(ServerTest, ServesNamesOnAnyPort) {
  const auto server = Server::start({.listen = {"localhost", 0}}, health_routes([] { return ""; }));
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_THAT(ask((*server)->address(), "GET /healthz"), StartsWith("HTTP/1.1 200"));
}

TEST_F(ServerTest, AnAddressOfAnotherMachineIsAnErrorThatSaysSo) {
  for (const char* host : {"192.0.2.1", "2001:db8::2"}) {
    const absl::Status status = Server::start({.listen = {host, 0}}, {}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(status.message(), AllOf(HasSubstr(host), testing::Not(HasSubstr("port is in use"))));
  }
}

TEST_F(ServerTest, AUsedPortIsAnError) {
  const auto second = Server::start({.listen = address_}, {});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(second.status().message(), HasSubstr(address_.to_string()));
}

}  // namespace
}  // namespace gleaner::http
