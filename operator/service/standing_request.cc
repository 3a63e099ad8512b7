#include "operator/service/standing_request.h"

namespace gleaner::operation {

bool StandingRequest::update(const api::TrainingJobStatus& status,
                             std::vector<std::pair<uint32_t, double>> spare_bits_per_second, autoscale::Verdict verdict,
                             absl::Duration now) {
  const reconcile::ScalingRequest before = std::move(request_);
  request_ = {};
  request_.attempt = status.attempt;
  request_.next_summer = status.next_summer;
  request_.spare_bits_per_second = std::move(spare_bits_per_second);
  // An addition stays in force until status.nextSummer shows it, since the API server may have been unreachable.
  const bool is_open = before.verdict.add.has_value() && before.attempt == request_.attempt &&
                       before.next_summer == request_.next_summer && now - addition_since_ < kAdditionLife;
  if (is_open && verdict.remove.empty() && !verdict.add.has_value()) verdict = before.verdict;
  if (verdict.add.has_value() && !is_open) addition_since_ = now;
  absl::flat_hash_map<uint32_t, absl::Duration> removal_since;
  for (const autoscale::Removal& removal : verdict.remove) {
    const auto found = removal_since_.find(removal.index);
    removal_since[removal.index] = found == removal_since_.end() ? now : found->second;
    if (now - removal_since[removal.index] > kOverdue) request_.overdue.push_back(removal.index);
  }
  const bool is_new = removal_since.size() != removal_since_.size() || request_.overdue != before.overdue ||
                      verdict.code != before.verdict.code || verdict.wanted != before.verdict.wanted ||
                      verdict.add.has_value();
  removal_since_ = std::move(removal_since);
  request_.verdict = std::move(verdict);
  return is_new;
}

}  // namespace gleaner::operation
