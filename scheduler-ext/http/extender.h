// Extender is the HTTP interface of the scheduler extender: POST /filter and /prioritize, GET /healthz and /readyz. It
// answers from a State that another object (Feeds) keeps up to date.
//
// It answers 400 with a reason if the body is not an ExtenderArgs object. For pods that are not Gleaner's, /filter
// accepts all nodes, and all scores are 0. Metrics: docs/metrics.md, gleaner_extender_*.
#pragma once

#include <prometheus/registry.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/address.h"
#include "common/base/env.h"
#include "common/http/server.h"
#include "common/placement/node_labels.h"
#include "scheduler-ext/http/call_metrics.h"
#include "scheduler-ext/http/wire.h"
#include "scheduler-ext/score/score.h"
#include "scheduler-ext/state/state.h"

namespace gleaner::extender {

class Extender {
 public:
  struct Options {
    Address listen;
    placement::LabelLevels levels;  // levels of node labels, widest first
    // 5,000 whole nodes take about 40 MB, their names 0.15 MB.
    http::Limits limits = {.body_bytes = size_t{64} << 20, .held_bytes = size_t{96} << 20};
    std::function<std::string()> why_not_ready;  // returns an empty string if ready
  };
  // All references must outlive the extender. Unavailable: it can't listen at options.listen.
  static absl::StatusOr<std::unique_ptr<Extender>> start(const Env& env, State& state, prometheus::Registry& registry,
                                                         Options options);
  Address address() const { return server_->address(); }

 private:
  Extender(const Env& env, State& state, prometheus::Registry& registry, placement::LabelLevels levels);
  absl::Status listen(const Options& options);
  template <typename Respond>
  http::Answer answer(const std::string& body, CallMetrics& metrics, Respond respond);
  std::string on_filter(Args args);
  // Returns the reasons for kube-scheduler, which counts equal ones, and logs the figures of each node.
  std::vector<std::string> reasons_of(const Args& args, std::vector<placement::Refusal> refusals) const;
  std::string on_prioritize(const Args& args);
  void promise_best(const placement::Pod& pod, const std::vector<std::string>& names, const Scores& result);

  const Env env_;
  State& state_;
  const placement::LabelLevels levels_;
  CallMetrics filter_metrics_, prioritize_metrics_;
  // Declared last, so that it is destroyed first, which completes answers in progress: its handlers use the other
  // members.
  std::unique_ptr<http::Server> server_;
};

}  // namespace gleaner::extender
