// Tests of the metrics over HTTP, as Prometheus reads them. promtool checks their format.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/metrics/following.h"
#include "common/metrics/server.h"
#include "coordinator/service/metrics.h"
#include "tests/http_get.h"
#include "tests/http_peer.h"
#include "tests/loopback6.h"
#include "tests/unit/run/program.h"

namespace gleaner {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string scrape(const Address& address) {
  const std::string answer = http_get(address, "/metrics");
  EXPECT_THAT(answer, testing::StartsWith("HTTP/1.1 200 OK"));
  return answer.substr(answer.find("\r\n\r\n") + 4);
}

TEST(Metrics, CoordinatorsPassPromtool) {
  auto registry = std::make_shared<prometheus::Registry>();
  coordinator::Metrics metrics(*registry, "digits");
  coordinator::Options options;
  options.workers = 3;
  coordinator::Core core(options, absl::ZeroDuration());
  coordinator::Actions actions;
  core.on_joined(1, {coordinator::Role::kWorker, 1, 0, 1, "10.0.0.1:7000", 0}, std::nullopt, absl::ZeroDuration(),
                 actions);
  core.on_joined(2, {coordinator::Role::kWorker, 1, 0, 1, "10.0.0.1:7000", 0}, std::nullopt, absl::ZeroDuration(),
                 actions);
  metrics.update(core);
  metrics.update(core);
  const auto server = metrics::serve({"127.0.0.1", 0}, registry);
  ASSERT_TRUE(server.ok()) << server.status();
  const std::string text = scrape((*server)->address());
  EXPECT_THAT(text, AllOf(HasSubstr("gleaner_coordinator_joined_ranks{job_name=\"digits\"} 1"),
                          HasSubstr("gleaner_coordinator_expected_ranks{job_name=\"digits\"} 3"),
                          HasSubstr("gleaner_coordinator_rejected_joins_total{job_name=\"digits\"} 1")));
  if (std::system("command -v promtool >/dev/null") != 0) GTEST_SKIP() << "promtool (package prometheus) is missing";
  const Scratch scratch;
  std::ofstream(scratch / "metrics") << text;
  const Ended ended = run_to_end({"/bin/sh", "-c", "exec promtool check metrics < " + (scratch / "metrics")});
  EXPECT_EQ(ended.status, 0) << ended.output << ended.errors;
  EXPECT_EQ(ended.output + ended.errors, "");
}

std::shared_ptr<prometheus::Registry> registry_of(const std::string& job) {
  auto registry = std::make_shared<prometheus::Registry>();
  metrics::add_gauge(*registry, {{"job_name", job}}, "gleaner_test", "A test.").Set(7);
  return registry;
}

TEST(Metrics, AreServedOnNames) {
  const auto server = metrics::serve({"localhost", 0}, registry_of("digits"));
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_EQ((*server)->address().host, "127.0.0.1");
  EXPECT_NE((*server)->address().port, 0);
  EXPECT_THAT(scrape((*server)->address()), HasSubstr("gleaner_test{job_name=\"digits\"} 7"));
}

TEST(Metrics, NeedAnAddress) {
  const auto none = metrics::serve_if_given("", registry_of("digits"));
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_EQ(*none, nullptr);
  EXPECT_TRUE(absl::IsInvalidArgument(metrics::serve_if_given("localhost", nullptr).status()));
  const auto server = metrics::serve_if_given("127.0.0.1:0", registry_of("digits"));
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_THAT(scrape((*server)->address()), HasSubstr("gleaner_test{job_name=\"digits\"} 7"));
}

TEST(Metrics, AreServedOnIPv6) {
  SKIP_WITHOUT_LOOPBACK6();
  const auto server = metrics::serve({"::", 0}, registry_of("digits"));
  ASSERT_TRUE(server.ok()) << server.status();
  const Address address = (*server)->address();
  EXPECT_EQ(address.host, "::");
  for (const char* host : {"::1", "::1", "127.0.0.1"}) {
    EXPECT_THAT(scrape({host, address.port}), HasSubstr("gleaner_test{job_name=\"digits\"} 7"));
  }
  const auto second = metrics::serve({"::1", address.port}, registry_of("digits"));
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("the port is in use"));
}

TEST(Metrics, AreServedBesidePeersThatNeitherAskNorRead) {
  const auto registry = registry_of("digits");
  // An answer that is larger than the buffers of two sockets.
  for (int i = 0; i < 60; ++i) {
    metrics::add_gauge(*registry, {{"i", std::string(100'000 + i, 'x')}}, "gleaner_many", "Many.");
  }
  const auto server = metrics::serve({"127.0.0.1", 0}, registry);
  ASSERT_TRUE(server.ok()) << server.status();
  std::vector<std::unique_ptr<HttpPeer>> slow;
  for (const auto& [count, request] : std::vector<std::pair<int, std::string>>{
           {70, ""}, {2, "GET /metrics HTTP/1.1\r\n"}, {2, "GET /metrics HTTP/1.1\r\n\r\n"}}) {
    for (int i = 0; i < count; ++i) {
      slow.push_back(std::make_unique<HttpPeer>((*server)->address()));
      slow.back()->send(request);
    }
    EXPECT_NE(scrape((*server)->address()).find("gleaner_test{job_name=\"digits\"} 7"), std::string::npos);
  }
}

TEST(Metrics, AnAddressOfAnotherMachineIsAnErrorThatSaysSo) {
  for (const char* host : {"192.0.2.1", "2001:db8::2"}) {
    const auto server = metrics::serve({host, 0}, registry_of("digits"));
    EXPECT_TRUE(absl::IsUnavailable(server.status()));
    EXPECT_THAT(std::string(server.status().message()), AllOf(HasSubstr(host), Not(HasSubstr("port is in use"))));
  }
}

TEST(Metrics, PortInUseIsAnError) {
  auto registry = std::make_shared<prometheus::Registry>();
  const auto first = metrics::serve({"127.0.0.1", 0}, registry);
  ASSERT_TRUE(first.ok());
  const auto second = metrics::serve((*first)->address(), registry);
  EXPECT_TRUE(absl::IsUnavailable(second.status()));
  EXPECT_THAT(std::string(second.status().message()), HasSubstr((*first)->address().to_string()));
}

}  // namespace
}  // namespace gleaner
