#include "scheduler-ext/http/extender.h"

#include <prometheus/counter.h>
#include <prometheus/histogram.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/kube/http_server.h"
#include "scheduler-ext/filter/filter.h"
#include "scheduler-ext/http/wire.h"
#include "scheduler-ext/score/score.h"

namespace gleaner::extender {
namespace {

using kube::HttpAnswer;
using kube::HttpServer;

// Of one kind of call.
class CallMetrics {
 public:
  CallMetrics(prometheus::Registry& registry, const std::string& call)
      : seconds_(&prometheus::BuildHistogram()
                      .Name("gleaner_extender_seconds")
                      .Help("Seconds that a call of the scheduler took")
                      .Register(registry)
                      .Add({{"call", call}}, prometheus::Histogram::BucketBoundaries{0.0005, 0.001, 0.002, 0.005, 0.01,
                                                                                     0.02, 0.05, 0.1, 0.2, 0.5, 1})),
        nodes_(&prometheus::BuildHistogram()
                    .Name("gleaner_extender_nodes")
                    .Help("Nodes that a call asked about")
                    .Register(registry)
                    .Add({{"call", call}},
                         prometheus::Histogram::BucketBoundaries{1, 10, 30, 100, 300, 1000, 3000, 10000})),
        errors_(&prometheus::BuildCounter()
                     .Name("gleaner_extender_errors_total")
                     .Help("Calls that could not be understood")
                     .Register(registry)
                     .Add({{"call", call}})) {}

  void record(absl::Duration took, size_t nodes) {
    seconds_->Observe(absl::ToDoubleSeconds(took));
    nodes_->Observe(static_cast<double>(nodes));
  }
  void record_error() { errors_->Increment(); }

 private:
  prometheus::Histogram* seconds_;
  prometheus::Histogram* nodes_;
  prometheus::Counter* errors_;
};

class HttpExtender final : public Extender {
 public:
  HttpExtender(const Env& env, State& state, prometheus::Registry& registry, std::vector<std::string> topology)
      : env_(env),
        state_(state),
        topology_(std::move(topology)),
        filter_metrics_(registry, "filter"),
        prioritize_metrics_(registry, "prioritize") {}

  absl::Status listen(const Options& options) {
    std::vector<HttpServer::Route> routes = kube::health_routes(options.why_not_ready);
    routes.push_back({"POST", "/filter", [this](const std::string& body) {
                        return answer(body, filter_metrics_, [this](Args args) { return on_filter(std::move(args)); });
                      }});
    routes.push_back({"POST", "/prioritize", [this](const std::string& body) {
                        return answer(body, prioritize_metrics_,
                                      [this](const Args& args) { return on_prioritize(args); });
                      }});
    GLN_ASSIGN_OR_RETURN(server_, HttpServer::start({options.listen, options.max_body_bytes}, std::move(routes)));
    return absl::OkStatus();
  }

  Address address() const override { return server_->address(); }

 private:
  template <typename Respond>
  HttpAnswer answer(const std::string& body, CallMetrics& metrics, Respond respond) {
    const absl::Duration start = env_.clock->since_start();
    absl::StatusOr<Args> args = parse_args(body);
    if (!args.ok()) {
      metrics.record_error();
      return {400, absl::StrCat(args.status().message(), "\n"), "text/plain; charset=utf-8"};
    }
    const size_t nodes = args->names.size();
    HttpAnswer result{200, respond(*std::move(args))};
    metrics.record(env_.clock->since_start() - start, nodes);
    return result;
  }

  std::string on_filter(Args args) {
    if (args.pod.role.empty()) {
      const std::vector<std::string> all_pass(args.names.size());
      return filter_result(std::move(args), all_pass);
    }
    const Picture picture = state_.look(args.pod, args.names);
    const std::vector<std::string> why_not = filter(args.pod, picture);
    // With one node left the scheduler does not ask for scores.
    if (args.pod.role == "summer" && std::count(why_not.begin(), why_not.end(), "") == 1) {
      promise_best(args.pod, args.names, score(args.pod, picture, topology_));
    }
    return filter_result(std::move(args), why_not);
  }

  std::string on_prioritize(const Args& args) {
    if (args.pod.role.empty()) return host_priorities(args.names, std::vector<int>(args.names.size()));
    const Scores result = score(args.pod, state_.look(args.pod, args.names), topology_);
    promise_best(args.pod, args.names, result);
    return host_priorities(args.names, result.scores);
  }

  void promise_best(const placement::Pod& pod, const std::vector<std::string>& names, const Scores& result) {
    if (result.best) state_.promise(pod, names[*result.best], result.bits_per_second);
  }

  const Env env_;
  State& state_;
  const std::vector<std::string> topology_;
  CallMetrics filter_metrics_, prioritize_metrics_;
  std::unique_ptr<HttpServer> server_;  // last: its handlers use the rest
};

}  // namespace

absl::StatusOr<std::unique_ptr<Extender>> Extender::start(const Env& env, State& state, prometheus::Registry& registry,
                                                          Options options) {
  auto extender = std::make_unique<HttpExtender>(env, state, registry, options.topology);
  GLN_RETURN_IF_ERROR(extender->listen(options));
  return extender;
}

}  // namespace gleaner::extender
