#include "coordinator/planning/modelling.h"

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
  if (!compares_ && plan.schedules.empty()) return std::make_shared<const strategy::Models>();
  want(plan);
  if (GLN_MUTATION("an event waits for models")) {
    if (const ModelRequest request = take_request()) on_modelled(request, carry_out(*request));
  }
  if (has_failed(plan)) return error_;
  return have(plan) ? models_ : nullptr;
}

void Modelling::want(const plan::Plan& plan) {
  if (on_way_ != nullptr || has_failed(plan) || (!compares_ && plan.schedules.empty())) return;
  // Cuts do not depend on the round trip.
  if (have(plan) && (!compares_ || are_similar(modelled_->round_trip_seconds, round_trip()))) return;
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
  on_way_ = nullptr;
  if (!models.ok()) {
    failed_ = request;
    error_ = models.status();
    return;
  }
  modelled_ = request;
  models_ = std::make_shared<const strategy::Models>(*std::move(models));
}

}  // namespace gleaner::coordinator
