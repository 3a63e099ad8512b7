#include "comm-lib/pipeline/pipeline.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace gleaner::pipeline {

absl::StatusOr<std::unique_ptr<Pipeline>> Pipeline::create(std::vector<std::unique_ptr<Stage>> stages,
                                                           Listener* listener) {
  auto pipeline = std::unique_ptr<Pipeline>(new Pipeline(std::move(stages), listener));
  if (pipeline->waiter_ == nullptr) {
    GLN_ASSIGN_OR_RETURN(pipeline->waker_, Waker::create());
  }
  return pipeline;
}

Pipeline::Pipeline(std::vector<std::unique_ptr<Stage>> stages, Listener* listener) : stages_(std::move(stages)) {
  Above* above = listener;
  for (size_t i = 0; i < stages_.size(); ++i) {
    Stage& stage = *stages_[i];
    stage.above_ = std::exchange(above, &stage);
    stage.next_ = i + 1 < stages_.size() ? stages_[i + 1].get() : nullptr;
    stage.listener_ = listener;
    stage.plan_ = &plan_;
    starts_on_any_thread_ = starts_on_any_thread_ && stage.starts_on_any_thread();
    if (waiter_ == nullptr) waiter_ = stage.waiter();
  }
  descriptors_.reserve(stages_.size() + 1);
}

// The stages below use the memory of those above.
Pipeline::~Pipeline() {
  while (!stages_.empty()) stages_.pop_back();
}

absl::Status Pipeline::on_event(const Event& event) {
  if (std::holds_alternative<Welcome>(event)) prepared_ = nullptr;
  if (const auto* commit = std::get_if<Commit>(&event)) GLN_RETURN_IF_ERROR(take_up(commit->epoch));
  for (auto stage = stages_.rbegin(); stage != stages_.rend(); ++stage) GLN_RETURN_IF_ERROR((*stage)->on_event(event));
  if (const auto* withdraw = std::get_if<Withdraw>(&event); withdraw != nullptr && prepared_ != nullptr) {
    if (prepared_->epoch == withdraw->epoch) prepared_ = nullptr;
  }
  if (const auto* prepare = std::get_if<Prepare>(&event)) prepared_ = prepare->plan;
  return absl::OkStatus();
}

absl::Status Pipeline::take_up(uint32_t epoch) {
  if (prepared_ == nullptr || prepared_->epoch != epoch) {
    return absl::FailedPreconditionError(
        absl::StrCat("the coordinator committed the plan of epoch ", epoch, ", which this rank has not prepared"));
  }
  plan_ = std::move(prepared_);
  return absl::OkStatus();
}

void Pipeline::poll() {
  for (auto stage = stages_.rbegin(); stage != stages_.rend(); ++stage) (*stage)->poll();
}

void Pipeline::advance() {
  for (const auto& stage : stages_) stage->advance();
}

void Pipeline::fail(const absl::Status& status) {
  prepared_ = nullptr;
  for (auto stage = stages_.rbegin(); stage != stages_.rend(); ++stage) (*stage)->fail(status);
}

void Pipeline::wait(absl::Duration timeout) {
  descriptors_.clear();
  for (const auto& stage : stages_) {
    const int descriptor = stage->descriptor();
    if (descriptor >= 0) descriptors_.push_back({descriptor, POLLIN, 0});
  }
  if (waker_ != nullptr) descriptors_.push_back({waker_->descriptor(), POLLIN, 0});
  if (waiter_ != nullptr && descriptors_.size() == 1) return waiter_->wait(timeout);
  if (waiter_ != nullptr && waiter_->spin_before_wait(timeout)) return;
  ::poll(descriptors_.data(), descriptors_.size(), static_cast<int>(absl::ToInt64Milliseconds(timeout)));
  if (waker_ != nullptr) waker_->clear();
}

void Pipeline::wake() {
  if (waiter_ != nullptr) return waiter_->wake();
  waker_->wake();
}

bool Pipeline::has_work() const {
  return std::ranges::any_of(stages_, [](const auto& stage) { return stage->has_work(); });
}

bool Pipeline::connected() const {
  return std::ranges::all_of(stages_, [](const auto& stage) { return stage->connected(); });
}

bool Pipeline::idle() const {
  return std::ranges::all_of(stages_, [](const auto& stage) { return stage->idle(); });
}

bool Pipeline::may_leave() const {
  return std::ranges::all_of(stages_, [](const auto& stage) { return stage->may_leave(); });
}

std::string Pipeline::describe_waiting() const {
  const auto missing = std::ranges::find_if(stages_, [](const auto& stage) { return !stage->connected(); });
  return (missing != stages_.end() ? *missing : stages_.back())->describe_waiting();
}

}  // namespace gleaner::pipeline
