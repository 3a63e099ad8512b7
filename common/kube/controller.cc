#include "common/kube/controller.h"

#include <prometheus/gauge.h>
#include <prometheus/histogram.h>

#include <array>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/thread.h"

namespace gleaner::kube {
namespace {

// In the order of Result's alternatives.
constexpr std::array<const char*, std::variant_size_v<Result>> kResultNames = {"done", "requeue", "retry", "terminal"};

class Metrics {
 public:
  Metrics(prometheus::Registry& registry, const std::string& controller)
      : waiting_(prometheus::BuildGauge()
                     .Name("gleaner_reconcile_queue")
                     .Help("Keys that are due and wait for a worker")
                     .Register(registry)
                     .Add({{"controller", controller}})) {
    auto& seconds = prometheus::BuildHistogram()
                        .Name("gleaner_reconcile_seconds")
                        .Help("Time of one reconciliation")
                        .Register(registry);
    const prometheus::Histogram::BucketBoundaries buckets = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                                             0.25,  0.5,    1,     2.5,  5,     10,   30};
    for (size_t i = 0; i < kResultNames.size(); ++i) {
      seconds_.at(i) = &seconds.Add({{"controller", controller}, {"result", kResultNames.at(i)}}, buckets);
    }
  }

  void observe(const Result& result, absl::Duration time) {
    seconds_.at(result.index())->Observe(absl::ToDoubleSeconds(time));
  }
  void set_waiting(size_t keys) { waiting_.Set(static_cast<double>(keys)); }

 private:
  prometheus::Gauge& waiting_;
  std::array<prometheus::Histogram*, kResultNames.size()> seconds_{};
};

class ThreadedController : public Controller {
 public:
  ThreadedController(const Env& env, Options options, Reconciler& reconciler, WorkQueue& queue,
                     prometheus::Registry* registry)
      : env_(env), options_(std::move(options)), reconciler_(reconciler), queue_(queue) {
    if (registry != nullptr) metrics_.emplace(*registry, options_.name);
    for (uint32_t i = 0; i < options_.workers; ++i) threads_.emplace_back([this, i] { run(i); });
  }

  ~ThreadedController() override {
    queue_.shut_down();
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  void run(uint32_t number);
  void settle(const std::string& key, const Result& result);

  const Env env_;
  const Options options_;
  Reconciler& reconciler_;
  WorkQueue& queue_;
  std::optional<Metrics> metrics_;
  std::vector<std::thread> threads_;
};

void ThreadedController::run(uint32_t number) {
  name_this_thread(absl::StrCat(options_.name.substr(0, 12), "/", number).c_str());
  while (const std::optional<std::string> key = queue_.next()) {
    if (metrics_) metrics_->set_waiting(queue_.waiting());
    const absl::Duration start = env_.clock->since_start();
    const Result result = reconciler_.reconcile(*key);
    if (metrics_) metrics_->observe(result, env_.clock->since_start() - start);
    settle(*key, result);
    queue_.done(*key);
    if (metrics_) metrics_->set_waiting(queue_.waiting());
  }
}

void ThreadedController::settle(const std::string& key, const Result& result) {
  if (const auto* retry = std::get_if<Retry>(&result)) {
    queue_.add_rate_limited(key);
    // A retry resolves conflicts and lost connections. Only a failure that repeats needs a person's attention.
    const uint32_t failures = queue_.failures(key);
    if (failures % 5 == 0) {
      env_.log->warning("reconciliation fails", "controller", options_.name, "key", key, "failures", failures, "why",
                        retry->why.ToString());
    } else {
      env_.log->debug("reconciliation failed", "controller", options_.name, "key", key, "why", retry->why.ToString());
    }
    return;
  }
  queue_.forget(key);
  if (const auto* later = std::get_if<RequeueAfter>(&result)) queue_.add_after(key, later->delay);
  if (const auto* terminal = std::get_if<Terminal>(&result)) {
    env_.log->warning("reconciliation failed; retrying can't help until the object changes", "controller",
                      options_.name, "key", key, "why", terminal->why.ToString());
  }
}

}  // namespace

std::unique_ptr<Controller> Controller::start(const Env& env, Options options, Reconciler& reconciler, WorkQueue& queue,
                                              prometheus::Registry* registry) {
  return std::make_unique<ThreadedController>(env, std::move(options), reconciler, queue, registry);
}

}  // namespace gleaner::kube
