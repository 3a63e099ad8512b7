// Tests of the extender over HTTP, with recorded calls of kube-scheduler.
#include "scheduler-ext/http/extender.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <prometheus/text_serializer.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "common/kube/process.h"
#include "common/placement/node_labels.h"
#include "tests/unit/scheduler_ext/cluster.h"

namespace gleaner::extender {
namespace {

using nlohmann::json;
using testing::HasSubstr;

struct Response {
  int status = 0;
  std::string body;
};

Response ask(const Address& address, const std::string& head, const std::string& body = "") {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  name.sin_port = htons(address.port);
  EXPECT_EQ(::connect(socket, reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
  const std::string request = absl::StrCat(
      head, " HTTP/1.1\r\nHost: test\r\nConnection: close\r\nContent-Length: ", body.size(), "\r\n\r\n", body);
  EXPECT_EQ(::send(socket, request.data(), request.size(), MSG_NOSIGNAL), static_cast<ssize_t>(request.size()));
  std::string answer, piece(65536, '\0');
  for (ssize_t got = 0; (got = ::recv(socket, piece.data(), piece.size(), 0)) > 0;) {
    answer.append(piece, 0, static_cast<size_t>(got));
  }
  ::close(socket);
  const size_t end = answer.find("\r\n\r\n");
  if (end == std::string::npos) return {};
  return {std::stoi(answer.substr(9, 3)), answer.substr(end + 4)};
}

class OverHttp : public testing::Test {
 protected:
  static void SetUpTestSuite() { kube::prepare_process(); }
  OverHttp() : log_({"test", LogLevel::kDebug}), state_(clock_, 1e9) {
    for (const std::string name : {"n1", "n2", "n3"}) state_.set_node(ready_node(name));
    state_.set_profile(fast_profile("n1", 0.5));
    state_.set_profile(fast_profile("n2", 10));
    state_.set_profile(fast_profile("n3", 1.5));
    auto extender = Extender::start({&clock_, nullptr, &log_}, state_, registry_,
                                    {.listen = {"127.0.0.1", 0},
                                     .levels = placement::default_label_levels(),
                                     .limits = {.body_bytes = 100'000},
                                     .why_not_ready = [this] { return why_not_ready_; }});
    EXPECT_TRUE(extender.ok()) << extender.status();
    extender_ = *std::move(extender);
  }
  Response post(const std::string& path, const std::string& body) {
    return ask(extender_->address(), absl::StrCat("POST ", path), body);
  }
  json filter_names(const std::string& file = "filter-names.json") {
    const Response response = post("/filter", recorded(file));
    EXPECT_EQ(response.status, 200) << response.body;
    return json::parse(response.body);
  }
  std::string metrics() {
    std::ostringstream text;
    prometheus::TextSerializer().Serialize(text, registry_.Collect());
    return text.str();
  }

  StandingClock clock_;
  Log log_;
  State state_;
  std::string why_not_ready_;
  prometheus::Registry registry_;
  std::unique_ptr<Extender> extender_;
};

TEST_F(OverHttp, FiltersByName) {
  const json result = filter_names();
  EXPECT_THAT(result["NodeNames"].get<std::vector<std::string>>(), testing::UnorderedElementsAre("n2", "n3"));
  EXPECT_THAT(result["FailedAndUnresolvableNodes"]["n1"].get<std::string>(), HasSubstr("spare bandwidth"));
  EXPECT_EQ(result["FailedNodes"], json::object());
}

TEST_F(OverHttp, LogsTheFiguresOfARefusedNode) {
  testing::internal::CaptureStderr();
  filter_names();
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("node=n1 why=spare bandwidth 500 Mbit/s is below 1"));
}

TEST_F(OverHttp, FiltersWholeNodes) {
  const json result = filter_names("filter-nodes.json");
  EXPECT_EQ(result["Nodes"]["items"].size(), 2u);
  EXPECT_TRUE(result["NodeNames"].is_null());
}

TEST_F(OverHttp, PrioritizesAndReservesTheBestNode) {
  for (const std::string file : {"prioritize-names.json", "prioritize-nodes.json"}) {
    const Response response = post("/prioritize", recorded(file));
    ASSERT_EQ(response.status, 200) << response.body;
    std::map<std::string, int> scores;
    for (const json& entry : json::parse(response.body)) scores[entry["Host"]] = entry["Score"];
    EXPECT_THAT(scores,
                testing::UnorderedElementsAre(testing::Pair("n1", 0), testing::Pair("n2", 10), testing::Pair("n3", 8)));
  }
  json second = json::parse(recorded("filter-names.json"));
  second["Pod"]["metadata"]["name"] = "digits-summer-1";
  EXPECT_EQ(json::parse(post("/filter", second.dump()).body)["NodeNames"], json({"n3"}));
  // n3 was the only node left, so the scheduler asks for no scores. The extender has reserved n3 for summer 1.
  second["Pod"]["metadata"]["name"] = "digits-summer-2";
  EXPECT_EQ(json::parse(post("/filter", second.dump()).body)["NodeNames"], json::array());
}

TEST_F(OverHttp, IgnoresPodsOfOtherPrograms) {
  json foreign = json::parse(recorded("filter-names.json"));
  foreign["Pod"]["metadata"].erase("labels");
  EXPECT_EQ(json::parse(post("/filter", foreign.dump()).body)["NodeNames"], foreign["NodeNames"]);
  for (const json& entry : json::parse(post("/prioritize", foreign.dump()).body)) EXPECT_EQ(entry["Score"], 0);
}

TEST_F(OverHttp, RefusesMalformedRequests) {
  const Response response = post("/filter", "{\"Pod\": ");
  EXPECT_EQ(response.status, 400);
  EXPECT_THAT(response.body, HasSubstr("expected JSON"));
  EXPECT_EQ(post("/prioritize", "{}").status, 400);
  EXPECT_EQ(post("/bind", "{}").status, 404);
  EXPECT_EQ(ask(extender_->address(), "GET /filter").status, 405);
  EXPECT_EQ(post("/filter", std::string(100'001, ' ')).status, 413);
  EXPECT_EQ(filter_names()["Error"], "");
  EXPECT_THAT(metrics(), testing::AllOf(HasSubstr("gleaner_extender_errors_total{call=\"filter\"} 1"),
                                        HasSubstr("gleaner_extender_errors_total{call=\"prioritize\"} 1"),
                                        HasSubstr("gleaner_extender_seconds_count{call=\"filter\"} 1"),
                                        HasSubstr("gleaner_extender_nodes_sum{call=\"filter\"} 3"),
                                        HasSubstr("gleaner_extender_seconds_count{call=\"prioritize\"} 0")));
}

TEST_F(OverHttp, ReadyzGivesTheReasonForNotBeingReady) {
  EXPECT_EQ(ask(extender_->address(), "GET /healthz").status, 200);
  EXPECT_EQ(ask(extender_->address(), "GET /readyz").status, 200);
  why_not_ready_ = "waiting for nodes";
  const Response response = ask(extender_->address(), "GET /readyz");
  EXPECT_EQ(response.status, 503);
  EXPECT_EQ(response.body, "waiting for nodes\n");
}

}  // namespace
}  // namespace gleaner::extender
