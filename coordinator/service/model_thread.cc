#include "coordinator/service/model_thread.h"

#include <chrono>
#include <utility>

#include "common/base/status_macros.h"
#include "common/base/thread.h"
#include "common/strategy/models.h"
#include "coordinator/planning/modelling.h"

namespace gleaner::coordinator {
namespace {

// By which an answer may be late, so that the job's thread waits for no simulation.
constexpr std::chrono::seconds kWarmUp(1);

}  // namespace

absl::StatusOr<std::unique_ptr<ModelThread>> ModelThread::start(std::function<void(Modelled)> answer) {
  auto made = std::unique_ptr<ModelThread>(new ModelThread(std::move(answer)));
  GLN_ASSIGN_OR_RETURN(made->thread_, start_thread("gln-models", [raw = made.get()] { raw->run(); }));
  return made;
}

ModelThread::~ModelThread() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void ModelThread::add(std::weak_ptr<Job> job, ModelRequest request) {
  absl::MutexLock lock(&mutex_);
  tasks_.push_back({std::move(job), std::move(request)});
}

void ModelThread::run() {
  const auto has_work = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_ || !tasks_.empty(); };
  while (true) {
    Task task;
    {
      absl::MutexLock lock(&mutex_, absl::Condition(&has_work));
      if (stopping_) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    if (task.job.expired()) continue;
    auto models = Modelling::carry_out(*task.request);
    using Clock = std::chrono::steady_clock;
    const Clock::time_point end = Clock::now() + kWarmUp;
    if (models.ok()) strategy::warm_up(*models, [&] { return Clock::now() < end; });
    answer_({std::move(task.job), std::move(task.request), std::move(models)});
  }
}

}  // namespace gleaner::coordinator
