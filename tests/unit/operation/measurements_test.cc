// Tests of Prometheus' answers and their age, with a server that implements only the HTTP API. tests/e2e uses a real
// Prometheus.
#include "operator/service/measurements.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/http/server.h"
#include "common/kube/process.h"
#include "tests/manual_clock.h"

namespace gleaner::operation {
namespace {

class MeasurementsTest : public ::testing::Test {
 protected:
  MeasurementsTest() {
    kube::prepare_process();
    auto server = http::Server::start({Address{"127.0.0.1", 0}}, {{"POST", "/api/v1/query", [this](const auto& body) {
                                                                     asked_.push_back(body);
                                                                     return answer_;
                                                                   }}});
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    client_ = client(absl::StrCat("http://127.0.0.1:", server_->address().port));
  }

  std::unique_ptr<PrometheusClient> client(const std::string& url) {
    auto made = PrometheusClient::create(clock_, {url, "", "", absl::Seconds(2)});
    EXPECT_TRUE(made.ok()) << made.status();
    return *std::move(made);
  }

  void answer(int status, std::string body) { answer_ = {status, std::move(body), "application/json"}; }
  static std::string vector_of(const std::string& labels, const std::string& value) {
    return absl::StrCat(R"({"status":"success","data":{"resultType":"vector","result":[{"metric":{)", labels,
                        R"(},"value":[1700000000.5,")", value, R"("]}]}})");
  }

  ManualClock clock_;
  http::Answer answer_;
  std::vector<std::string> asked_;
  std::unique_ptr<http::Server> server_;
  std::unique_ptr<PrometheusClient> client_;
};

TEST_F(MeasurementsTest, ReadsAVector) {
  answer(200, vector_of(R"("namespace":"team","trainingjob":"digits")", "0.25"));
  const auto samples = client_->query("rate(x[1m]) > 0");
  ASSERT_TRUE(samples.ok()) << samples.status();
  ASSERT_EQ(samples->size(), 1U);
  EXPECT_EQ((*samples)[0].value, 0.25);
  EXPECT_EQ((*samples)[0].labels.at("trainingjob"), "digits");
  EXPECT_EQ(asked_.at(0), "query=rate%28x%5B1m%5D%29%20%3E%200");
}

TEST_F(MeasurementsTest, LeavesOutValuesThatAreNoNumbers) {
  answer(200, vector_of("", "NaN"));
  EXPECT_TRUE(client_->query("x")->empty());
  answer(200, vector_of("", "+Inf"));
  EXPECT_TRUE(client_->query("x")->empty());
}

TEST_F(MeasurementsTest, DistinguishesErrors) {
  answer(400, R"({"status":"error","errorType":"bad_data","error":"unexpected end of input"})");
  EXPECT_TRUE(absl::IsInvalidArgument(client_->query("x(").status()));
  EXPECT_TRUE(absl::StrContains(client_->query("x(").status().message(), "unexpected end of input"));
  answer(503, R"({"status":"error","errorType":"timeout","error":"query timed out"})");
  EXPECT_TRUE(absl::IsUnavailable(client_->query("x").status()));
  answer(200, "<html>");
  EXPECT_TRUE(absl::IsUnavailable(client_->query("x").status()));
  answer(200, R"({"status":"success","data":{"resultType":"vector","result":[{"metric":{}}]}})");
  EXPECT_TRUE(absl::IsUnavailable(client_->query("x").status()));
  answer(200, R"({"status":"success","data":{"resultType":"matrix","result":[]}})");
  EXPECT_TRUE(absl::IsInvalidArgument(client_->query("x").status()));
  answer(404, "404 page not found");
  EXPECT_TRUE(absl::IsUnavailable(client_->query("x").status()));
  EXPECT_FALSE(client("http://127.0.0.1:1")->query("x").ok());
  EXPECT_TRUE(absl::IsInvalidArgument(PrometheusClient::create(clock_, {"prometheus:9090", "", "", {}}).status()));
}

TEST_F(MeasurementsTest, KeepsReadingsWithTheirAge) {
  Measurements measurements(clock_, *client_, {}, absl::Seconds(90));
  EXPECT_FALSE(measurements.job("team/digits").step_seconds.has_value());
  // Every query gets this answer, including the one for the age.
  answer(200, vector_of(R"("namespace":"team","trainingjob":"digits")", "3"));
  ASSERT_TRUE(measurements.poll().ok());
  ASSERT_TRUE(measurements.job("team/digits").step_seconds.has_value());
  EXPECT_EQ(measurements.job("team/digits").step_seconds->value, 3);
  EXPECT_EQ(measurements.job("team/digits").exposed_seconds->age, absl::Seconds(3));
  EXPECT_FALSE(measurements.job("team/other").step_seconds.has_value());
  EXPECT_FALSE(measurements.node("digits").spare_cpus.has_value());
  EXPECT_TRUE(std::any_of(asked_.begin(), asked_.end(),
                          [](const std::string& asked) { return absl::StrContains(asked, "%5B90s%5D"); }));

  clock_.advance(absl::Seconds(20));
  answer(500, "");
  EXPECT_FALSE(measurements.poll().ok());
  EXPECT_EQ(measurements.job("team/digits").step_seconds->age, absl::Seconds(23)) << "the measurement stays and ages";

  answer(200, vector_of(R"("node":"n1")", "2"));
  ASSERT_TRUE(measurements.poll().ok());
  EXPECT_FALSE(measurements.job("team/digits").step_seconds.has_value()) << "the job is no longer measured";
  EXPECT_EQ(measurements.node("n1").spare_bits_per_second->value, 2);
}

TEST_F(MeasurementsTest, ABadExpressionDoesNotStopOtherQueries) {
  Measurements measurements(clock_, *client_, {{kGoodput, "nonsense("}}, absl::Seconds(60));
  answer(400, R"({"status":"error","errorType":"bad_data","error":"no"})");
  EXPECT_TRUE(absl::IsInvalidArgument(measurements.poll()));
  EXPECT_EQ(asked_.size(), default_queries().size());
  asked_.clear();
  answer(503, "");
  EXPECT_FALSE(measurements.poll().ok());
  EXPECT_EQ(asked_.size(), 1U) << "one query fails, and the others are not sent";
}

}  // namespace
}  // namespace gleaner::operation
