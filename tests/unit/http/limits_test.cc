// Tests of the limits that keep an HTTP server answering beside peers that are slow, silent or send too much.
#include "common/http/limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/http/server.h"
#include "tests/http_peer.h"
#include "tests/sanitizers.h"

namespace gleaner::http {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

constexpr size_t kBig = size_t{16} << 20;  // more than the buffers of two sockets take
constexpr absl::Duration kLong = absl::Hours(1);
constexpr absl::Duration kShort = absl::Milliseconds(100);

class LimitsTest : public testing::Test {
 protected:
  // Starts a server whose limits on time are out of reach, unless a test sets them.
  void start(const std::function<void(Limits&)>& set) {
    Limits limits{.request = kLong, .answer = kLong, .idle = kLong};
    set(limits);
    std::vector<Route> routes = health_routes([] { return ""; });
    routes.push_back({"POST", "/echo", [](const std::string& body) { return Answer{200, body}; }});
    routes.push_back({"GET", "/big", [](const std::string&) { return Answer{200, std::string(kBig, 'x')}; }});
    server_ = Server::start({.listen = {"127.0.0.1", 0}, .limits = limits}, std::move(routes)).value();
  }

  std::unique_ptr<HttpPeer> peer(absl::string_view text, const std::string& from = "") const {
    auto made = std::make_unique<HttpPeer>(server_->address(), from);
    EXPECT_TRUE(made->connected());
    made->send(text);
    return made;
  }
  std::string health() const { return peer("GET /healthz HTTP/1.0\r\n\r\n")->receive(); }

  std::unique_ptr<Server> server_;
};

size_t resident_bytes() {
  std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen("/proc/self/statm", "r"), &std::fclose);
  unsigned long total = 0, resident = 0;
  EXPECT_EQ(std::fscanf(file.get(), "%lu %lu", &total, &resident), 2);
  return resident * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}

TEST_F(LimitsTest, BodiesWithoutEndAreRefused) {
  constexpr size_t kSent = size_t{128} << 20;
  start([](Limits& limits) { limits.body_bytes = 100'000; });
  const std::string data(size_t{1} << 20, 'x');
  const std::string chunk = absl::StrCat("100000\r\n", data, "\r\n");
  const size_t before = resident_bytes();
  for (const auto& [line, status] : std::vector<std::pair<std::string, std::string>>{{"GET /healthz", "413"},
                                                                                     {"POST /echo", "413"},
                                                                                     {"HEAD /healthz", "413"},
                                                                                     {"PUT /echo", "405"},
                                                                                     {"POST /no", "404"}}) {
    for (const auto& [header, piece] : std::vector<std::pair<std::string, std::string>>{
             {"Transfer-Encoding: chunked", chunk}, {"Content-Length: 9000000000", data}}) {
      SCOPED_TRACE(absl::StrCat(line, " ", header));
      const auto sender = peer(absl::StrCat(line, " HTTP/1.1\r\nHost: test\r\n", header, "\r\n\r\n"));
      for (size_t sent = 0; sent < kSent && sender->send(piece);) sent += piece.size();
      EXPECT_THAT(sender->receive(), AllOf(StartsWith("HTTP/1.1 " + status), HasSubstr("Connection: close")));
    }
  }
  if (kSanitized) GTEST_SKIP() << "sanitizers make the used memory meaningless";
  EXPECT_LT(resident_bytes(), before + kSent / 4);
}

TEST_F(LimitsTest, SmallChunksWithoutEndAreRefused) {
  start([](Limits& limits) { limits.body_bytes = 1000; });
  const auto sender = peer("POST /echo HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (int i = 0; i < 2000 && sender->send("1\r\nx\r\n");) ++i;
  EXPECT_THAT(sender->receive(), AllOf(StartsWith("HTTP/1.1 413"), HasSubstr("at most 1000 bytes")));
}

TEST_F(LimitsTest, HeadersWithoutEndAreRefused) {
  start([](Limits& limits) { limits.head_bytes = 1000; });
  for (const std::string begin : {"GET /healthz HTTP/1.1\r\n", "GET /healthz HTTP/1.1\r\nX: ", "GET /"}) {
    EXPECT_THAT(peer(begin + std::string(2000, 'x'))->receive(), StartsWith("HTTP/1.1 431"));
  }
}

TEST_F(LimitsTest, RequestsThatTrickleAreDropped) {
  start([](Limits& limits) {
    limits.head_bytes = 2000;
    limits.request = kShort;
  });
  for (const std::string begin : {"GET /healthz HTTP/1.1\r\nX: ", "POST /echo HTTP/1.1\r\nContent-Length: 2000\r\n\r\n",
                                  "POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n7d0\r\n"}) {
    SCOPED_TRACE(begin);
    const auto trickling = peer(begin);
    for (int i = 0; i < 2000 && trickling->send("x"); ++i) absl::SleepFor(absl::Milliseconds(5));
    EXPECT_EQ(trickling->receive(), "");
  }
}

TEST_F(LimitsTest, SilentConnectionsAreDropped) {
  start([](Limits& limits) { limits.request = kShort; });
  EXPECT_EQ(peer("")->receive(), "");
  EXPECT_EQ(peer("GET /healthz HTTP/1.1\r\n")->receive(), "");
  start([](Limits& limits) { limits.idle = kShort; });
  EXPECT_THAT(peer("GET /healthz HTTP/1.1\r\nHost: test\r\n\r\n")->receive(), EndsWith("ok\n"));
}

TEST_F(LimitsTest, ReadersThatDoNotReadAreDropped) {
  start([](Limits& limits) { limits.answer = kShort; });
  const auto reader = peer("GET /big HTTP/1.1\r\nHost: test\r\n\r\n");
  EXPECT_TRUE(reader->is_dropped());
  EXPECT_LT(reader->receive().size(), kBig);
}

TEST_F(LimitsTest, NewPeersAreServedBesideSlowOnes) {
  start([](Limits& limits) { limits.connections = 8; });
  for (const char* request : {"", "GET /healthz HTTP/1.1\r\n", "POST /echo HTTP/1.1\r\nContent-Length: 5\r\n\r\nab",
                              "GET /healthz HTTP/1.1\r\n\r\n", "GET /big HTTP/1.1\r\n\r\n"}) {
    SCOPED_TRACE(request);
    std::vector<std::unique_ptr<HttpPeer>> slow;
    for (int i = 0; i < 30; ++i) slow.push_back(peer(request));
    EXPECT_THAT(health(), EndsWith("ok\n"));
  }
}

TEST_F(LimitsTest, AHostWithManyConnectionsTakesNoneFromOthers) {
  start([](Limits& limits) { limits.connections = 8; });
  const auto modest = peer("POST /echo HTTP/1.1\r\nConnection: close\r\nContent-Length: 5\r\n\r\nab", "127.0.0.2");
  std::vector<std::unique_ptr<HttpPeer>> flood;
  for (int i = 0; i < 30; ++i) flood.push_back(peer("", "127.0.0.3"));
  EXPECT_THAT(health(), EndsWith("ok\n"));
  modest->send("cde");
  EXPECT_THAT(modest->receive(), EndsWith("\r\n\r\nabcde"));
}

TEST_F(LimitsTest, SmallRequestsFindRoomBesideLargeOnes) {
  constexpr size_t kBody = 100'000;
  start([](Limits& limits) {
    limits.body_bytes = kBody;
    limits.held_bytes = kBody * 3 / 2;
  });
  std::vector<std::unique_ptr<HttpPeer>> large;
  for (int i = 0; i < 5; ++i) {
    large.push_back(
        peer(absl::StrCat("POST /echo HTTP/1.1\r\nContent-Length: ", kBody, "\r\n\r\n", std::string(kBody - 1, 'x'))));
  }
  const auto dropped = [](const auto& each) { return each->is_dropped(absl::ZeroDuration()); };
  const absl::Time end = absl::Now() + absl::Minutes(1);
  while (std::count_if(large.begin(), large.end(), dropped) < 4 && absl::Now() < end) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_EQ(std::count_if(large.begin(), large.end(), dropped), 4);
  EXPECT_THAT(peer("POST /echo HTTP/1.1\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc")->receive(),
              EndsWith("abc"));
}

TEST_F(LimitsTest, UnreadAnswersTakeLimitedMemory) {
  start([](Limits&) {});
  EXPECT_GT(peer("GET /big HTTP/1.0\r\n\r\n")->receive().size(), kBig);  // one answer alone may exceed the limit
  const size_t before = resident_bytes();
  std::vector<std::unique_ptr<HttpPeer>> slow;
  for (int i = 0; i < 30; ++i) slow.push_back(peer("GET /big HTTP/1.1\r\n\r\n"));
  EXPECT_THAT(health(), EndsWith("ok\n"));
  if (kSanitized) GTEST_SKIP() << "sanitizers make the used memory meaningless";
  EXPECT_LT(resident_bytes(), before + 10 * kBig);
}

}  // namespace
}  // namespace gleaner::http
