// Prometheus' HTTP API: instant queries. Thread safe; calls block.
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
    std::string url;         // http://prometheus.monitoring:9090, or with a path before /api
    std::string token_file;  // bearer token; empty: none
    std::string ca_file;     // PEM, of an https URL; empty: the system's
    absl::Duration timeout = absl::Seconds(5);
  };
  struct Sample {
    std::map<std::string, std::string> labels;
    double value = 0;  // finite
  };

  // InvalidArgument: this is no URL.
  static absl::StatusOr<std::unique_ptr<PrometheusClient>> create(const Clock& clock, const Options& options);

  // The expression's value now, without what is not a number. InvalidArgument: Prometheus does not understand the
  // expression, or its value is no vector; Unavailable, DeadlineExceeded: no answer, or none that Prometheus would
  // give.
  absl::StatusOr<std::vector<Sample>> query(const std::string& expression);

 private:
  PrometheusClient(std::unique_ptr<kube::Http> http, absl::Duration timeout)
      : http_(std::move(http)), timeout_(timeout) {}

  const std::unique_ptr<kube::Http> http_;
  const absl::Duration timeout_;
};

}  // namespace gleaner::operation
