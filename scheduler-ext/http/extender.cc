#include "scheduler-ext/http/extender.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "scheduler-ext/filter/filter.h"

namespace gleaner::extender {

Extender::Extender(const Env& env, State& state, prometheus::Registry& registry, placement::LabelLevels levels)
    : env_(env),
      state_(state),
      levels_(std::move(levels)),
      filter_metrics_(registry, "filter"),
      prioritize_metrics_(registry, "prioritize") {}

template <typename Respond>
http::Answer Extender::answer(const std::string& body, CallMetrics& metrics, Respond respond) {
  const absl::Duration start = env_.clock->since_start();
  absl::StatusOr<Args> args = parse_args(body);
  if (!args.ok()) {
    metrics.record_error();
    return http::plain(400, std::string(args.status().message()));
  }
  const size_t nodes = args->names.size();
  http::Answer result{200, respond(*std::move(args))};
  metrics.record(env_.clock->since_start() - start, nodes);
  return result;
}

absl::Status Extender::listen(const Options& options) {
  std::vector<http::Route> routes = http::health_routes(options.why_not_ready);
  routes.push_back({"POST", "/filter", [this](const std::string& body) {
                      return answer(body, filter_metrics_, [this](Args args) { return on_filter(std::move(args)); });
                    }});
  routes.push_back({"POST", "/prioritize", [this](const std::string& body) {
                      return answer(body, prioritize_metrics_,
                                    [this](const Args& args) { return on_prioritize(args); });
                    }});
  GLN_ASSIGN_OR_RETURN(server_, http::Server::start({options.listen, options.limits}, std::move(routes)));
  return absl::OkStatus();
}

std::string Extender::on_filter(Args args) {
  if (args.pod.role.empty()) {
    const std::vector<std::string> all_pass(args.names.size());
    return filter_result(std::move(args), all_pass);
  }
  const Snapshot snapshot = state_.take_snapshot(args.pod, args.names);
  const std::vector<std::string> reasons = reasons_of(args, filter(args.pod, snapshot));
  // kube-scheduler does not request scores if only one node is left.
  if (args.pod.role == "summer" && std::count(reasons.begin(), reasons.end(), "") == 1) {
    promise_best(args.pod, args.names, score(args.pod, snapshot, levels_));
  }
  return filter_result(std::move(args), reasons);
}

std::vector<std::string> Extender::reasons_of(const Args& args, std::vector<placement::Refusal> refusals) const {
  std::vector<std::string> reasons(refusals.size());
  for (size_t i = 0; i < refusals.size(); ++i) {
    if (refusals[i].reason.empty()) continue;
    env_.log->debug("node refused", "pod", args.pod.key, "node", args.names[i], "why", refusals[i].why_not);
    reasons[i] = std::move(refusals[i].reason);
  }
  return reasons;
}

std::string Extender::on_prioritize(const Args& args) {
  if (args.pod.role.empty()) return host_priorities(args.names, std::vector<int>(args.names.size()));
  const Scores result = score(args.pod, state_.take_snapshot(args.pod, args.names), levels_);
  promise_best(args.pod, args.names, result);
  return host_priorities(args.names, result.scores);
}

void Extender::promise_best(const placement::Pod& pod, const std::vector<std::string>& names, const Scores& result) {
  if (result.best) state_.promise(pod, names[*result.best], result.bits_per_second);
}

absl::StatusOr<std::unique_ptr<Extender>> Extender::start(const Env& env, State& state, prometheus::Registry& registry,
                                                          Options options) {
  auto extender = std::unique_ptr<Extender>(new Extender(env, state, registry, options.levels));
  GLN_RETURN_IF_ERROR(extender->listen(options));
  return extender;
}

}  // namespace gleaner::extender
