#include "coordinator/modelling.h"

#include <utility>

#include "common/base/faults.h"
#include "common/strategy/choice.h"

namespace gleaner::coordinator {
namespace {

constexpr double kSimilar = 1.25;  // round trips that differ by less are the same

bool are_similar(double a, double b) { return a <= kSimilar * b && b <= kSimilar * a; }

}  // namespace

double Modelling::round_trip() const {
  return round_trip_seconds_ > 0 ? round_trip_seconds_ : strategy::kAssumedRoundTripSeconds;
}

absl::StatusOr<std::shared_ptr<const strategy::Models>> Modelling::of(const plan::Plan& plan) {
  static const auto kNoModels = std::make_shared<const strategy::Models>();
  if (!compares_ && plan.schedules.empty()) return kNoModels;
  if (!error_.ok()) return std::exchange(error_, absl::OkStatus());
  want(plan);
  if (GLN_MUTATION("an event waits for models")) {
    if (const ModelRequest request = take_request()) on_modelled(request, carry_out(*request));
  }
  return have(plan) ? models_ : nullptr;
}

void Modelling::want(const plan::Plan& plan) {
  if (on_way_ != nullptr || (!compares_ && plan.schedules.empty())) return;
  if (have(plan) && are_similar(modelled_->round_trip_seconds, round_trip())) return;
  wanted_ =
      std::make_shared<const strategy::ModelRequest>(strategy::request_for(plan, network_, round_trip(), compares_));
}

ModelRequest Modelling::take_request() {
  if (wanted_ == nullptr) return nullptr;
  on_way_ = std::exchange(wanted_, nullptr);
  return on_way_;
}

absl::StatusOr<strategy::Models> Modelling::carry_out(const strategy::ModelRequest& request) {
  GLN_RARE("coordinator: strategies are modelled");
  return strategy::model(request);
}

void Modelling::on_modelled(const ModelRequest& request, absl::StatusOr<strategy::Models> models) {
  if (request != on_way_) return;
  modelled_ = std::exchange(on_way_, nullptr);
  error_ = models.status();
  models_ = models.ok() ? std::make_shared<const strategy::Models>(*std::move(models)) : nullptr;
}

}  // namespace gleaner::coordinator
