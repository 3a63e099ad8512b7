#include "summation-service/service/watch.h"

#include <utility>

#include "common/base/thread.h"
#include "summation-service/service/background.h"

namespace gleaner::service {

Watch::Watch(const Env& env, double yield_above, Actions actions, const Times& times)
    : env_(env),
      yield_above_(yield_above),
      actions_(std::move(actions)),
      times_(times),
      guard_(yield_above),
      thread_([this] { run(); }) {}

Watch::~Watch() {
  {
    const absl::MutexLock lock(&mutex_);
    stopped_ = true;
  }
  thread_.join();
}

void Watch::run() {
  name_this_thread("gln-guard");
  take_short_turns();
  looked_ = env_.clock->since_start();
  while (!needed()) {
    if (stopped_within(times_.every)) return;
  }
  env_.log->warning("the summer leaves: other processes need this machine's processors", "others share",
                    guard_.others_share(), "idle share", guard_.idle_share(), "limit", yield_above_);
  if (!late_) {
    actions_.leave();
    if (stopped_within(times_.patience)) return;
  }
  actions_.kill();
}

bool Watch::needed() {
  const std::optional<Usage> usage = actions_.read();
  const absl::Duration now = env_.clock->since_start();
  late_ = now - std::exchange(looked_, now) > kLate;
  if (!usage.has_value()) return false;
  const bool needed = guard_.update(now, *usage);
  others_share_.store(guard_.others_share(), std::memory_order_relaxed);
  return needed;
}

bool Watch::stopped_within(absl::Duration time) {
  const absl::MutexLock lock(&mutex_);
  return mutex_.AwaitWithTimeout(absl::Condition(&stopped_), time);
}

}  // namespace gleaner::service
