// Tests of the metrics over HTTP, as Prometheus reads them. promtool checks their format.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "common/metrics/server.h"
#include "coordinator/metrics.h"
#include "tests/unit/run/program.h"

namespace gleaner {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string scrape(const Address& address) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  name.sin_port = htons(address.port);
  EXPECT_EQ(::connect(socket, reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
  const std::string request = "GET /metrics HTTP/1.0\r\n\r\n";
  EXPECT_EQ(::write(socket, request.data(), request.size()), static_cast<ssize_t>(request.size()));
  std::string answer, piece(4096, '\0');
  for (ssize_t got = 0; (got = ::read(socket, piece.data(), piece.size())) > 0;) {
    answer.append(piece, 0, static_cast<size_t>(got));
  }
  ::close(socket);
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
  const auto server = metrics::MetricsServer::start({"127.0.0.1", 0}, registry);
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

TEST(Metrics, PortInUseIsAnError) {
  auto registry = std::make_shared<prometheus::Registry>();
  const auto first = metrics::MetricsServer::start({"127.0.0.1", 0}, registry);
  ASSERT_TRUE(first.ok());
  const auto second = metrics::MetricsServer::start((*first)->address(), registry);
  EXPECT_TRUE(absl::IsUnavailable(second.status()));
  EXPECT_THAT(std::string(second.status().message()), HasSubstr((*first)->address().to_string()));
}

}  // namespace
}  // namespace gleaner
