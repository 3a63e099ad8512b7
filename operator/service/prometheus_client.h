// PrometheusClient makes instant queries by Prometheus' HTTP API. Thread safe. Calls block.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/env.h"
#include "common/kube/http.h"

namespace gleaner::operation {

class PrometheusClient {
 public:
  struct Options {
    std::string url;         // http://prometheus.monitoring:9090; may end in a path, which comes before /api
    std::string token_file;  // file with a bearer token; empty: none
    std::string ca_file;     // PEM file with the CA of an https URL; empty: the system's CAs
    absl::Duration timeout = absl::Seconds(5);
  };
  struct Sample {
    std::map<std::string, std::string> labels;
    double value = 0;  // finite
  };

  // InvalidArgument: `options.url` is not a URL.
  static absl::StatusOr<std::unique_ptr<PrometheusClient>> create(const Clock& clock, const Options& options);

  // Evaluates the expression now and returns its samples with finite values. InvalidArgument: Prometheus does not
  // understand the expression, or its value is not a vector. Unavailable, DeadlineExceeded: Prometheus did not answer,
  // answered with an error, or gave an answer that its API does not specify.
  absl::StatusOr<std::vector<Sample>> query(const std::string& expression);

 private:
  PrometheusClient(std::unique_ptr<kube::Http> http, absl::Duration timeout)
      : http_(std::move(http)), timeout_(timeout) {}

  const std::unique_ptr<kube::Http> http_;
  const absl::Duration timeout_;
};

}  // namespace gleaner::operation
