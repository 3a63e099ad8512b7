#include "operator/service/prometheus_client.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"

namespace gleaner::operation {
namespace {

using nlohmann::json;

constexpr uint32_t kInFlight = 2;
constexpr size_t kShown = 200;  // characters of a malformed answer to quote

std::string percent_encoded(const std::string& text) {
  std::string encoded;
  for (const char c : text) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c))) {
      encoded.push_back(c);
    } else {
      absl::StrAppendFormat(&encoded, "%%%02X", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

std::string text_at(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

absl::Status nonsense(const kube::Http::Response& response) {
  return absl::UnavailableError(
      absl::StrCat("Prometheus answered HTTP ", response.status,
                   " with an answer that its API does not specify: ", response.body.substr(0, kShown)));
}

absl::StatusOr<PrometheusClient::Sample> parse_sample(const json& element) {
  PrometheusClient::Sample sample;
  for (const auto& [name, value] : element.at("metric").items()) sample.labels[name] = value.get<std::string>();
  const json& value = element.at("value");
  if (!absl::SimpleAtod(value.at(1).get<std::string>(), &sample.value)) {
    return absl::UnavailableError("Prometheus returned a value that is not a number");
  }
  return sample;
}

absl::StatusOr<std::vector<PrometheusClient::Sample>> parse_answer(const kube::Http::Response& response) {
  const json answer = json::parse(response.body, nullptr, /*allow_exceptions=*/false);
  if (!answer.is_object()) return nonsense(response);
  if (text_at(answer, "status") != "success") {
    const std::string error = text_at(answer, "error");
    if (error.empty()) return nonsense(response);
    const std::string message = absl::StrCat("Prometheus: ", text_at(answer, "errorType"), ": ", error);
    const bool is_ours = response.status == 400 || response.status == 422;
    return is_ours ? absl::InvalidArgumentError(message) : absl::UnavailableError(message);
  }
  try {
    const json& data = answer.at("data");
    if (const std::string type = text_at(data, "resultType"); type != "vector") {
      return absl::InvalidArgumentError(absl::StrCat("expected an expression with a vector, not a ", type));
    }
    std::vector<PrometheusClient::Sample> samples;
    for (const json& element : data.at("result")) {
      GLN_ASSIGN_OR_RETURN(PrometheusClient::Sample sample, parse_sample(element));
      if (std::isfinite(sample.value)) samples.push_back(std::move(sample));
    }
    return samples;
  } catch (const json::exception&) {
    return nonsense(response);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<PrometheusClient>> PrometheusClient::create(const Clock& clock, const Options& options) {
  kube::Http::Options http;
  http.credentials.server = options.url;
  http.credentials.token_file = options.token_file;
  http.credentials.ca_file = options.ca_file;
  http.user_agent = "gleaner-operator";
  http.timeout = http.stall_timeout = options.timeout;
  http.in_flight = kInFlight;
  auto made = kube::Http::create(clock, std::move(http));
  if (!made.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected a URL of Prometheus such as http://prometheus.monitoring:9090, not '", options.url, "'"));
  }
  return std::unique_ptr<PrometheusClient>(new PrometheusClient(*std::move(made), options.timeout));
}

absl::StatusOr<std::vector<PrometheusClient::Sample>> PrometheusClient::query(const std::string& expression) {
  kube::Http::Request request;
  request.method = "POST";
  request.target = "/api/v1/query";
  request.content_type = "application/x-www-form-urlencoded";
  request.body = absl::StrCat("query=", percent_encoded(expression));
  GLN_ASSIGN_OR_RETURN(const kube::Http::Response response, http_->call(request, timeout_, nullptr));
  return parse_answer(response);
}

}  // namespace gleaner::operation
