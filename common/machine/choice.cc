#include "common/machine/choice.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace gleaner::machine {
namespace {

// Returns the candidate with the least time, without `other`; if one runs today, only among those.
std::optional<size_t> fastest(const std::vector<Candidate>& candidates, std::optional<size_t> other, bool runs) {
  std::optional<size_t> best;
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (!candidates[i].is_possible() || i == other || (runs && !candidates[i].runs())) continue;
    if (!best.has_value() || candidates[i].seconds * kEqual < candidates[*best].seconds) best = i;
  }
  return best;
}

// J(x) is a maximum of lines, so it is convex, and a ternary search finds its minimum.
std::optional<Mix> best_mix(const Machine& machine, const Step& step) {
  double low = 0, high = 1;
  for (int i = 0; i < 100; ++i) {
    const double left = low + (high - low) / 3, right = high - (high - low) / 3;
    const bool is_left = cpu_assisted_seconds(machine, step, left) <= cpu_assisted_seconds(machine, step, right);
    (is_left ? high : low) = is_left ? right : left;
  }
  const Mix mix{low, cpu_assisted_seconds(machine, step, low)};
  if (mix.seconds * 1.001 >= cpu_assisted_seconds(machine, step, 0)) return std::nullopt;
  return mix;
}

absl::Status check(const Step& step) {
  if (!(step.gradient_bytes > 0) || !std::isfinite(step.gradient_bytes)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a step has ", step.gradient_bytes, " bytes of gradients; give a number above 0"));
  }
  if (!(step.network_share >= 0) || !std::isfinite(step.network_share)) {
    return absl::InvalidArgumentError(absl::StrCat("NICs carry ", step.network_share,
                                                   " bytes for each byte of the gradient; give 0 or a number above 0"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Choice> choose(const Machine& machine, const Step& step) {
  GLN_RETURN_IF_ERROR(check(machine));
  GLN_RETURN_IF_ERROR(check(step));
  Choice choice;
  choice.switches = count_switches(machine);
  choice.candidates = candidates(machine, step);
  // Copies to host memory are always possible, and run.
  choice.best = fastest(choice.candidates, std::nullopt, false).value_or(0);
  choice.runner_up = fastest(choice.candidates, choice.best, false);
  choice.current = fastest(choice.candidates, std::nullopt, true).value_or(0);
  for (const Candidate& candidate : choice.candidates) {
    if (candidate.way == Way::kCpuAssisted && candidate.is_possible()) choice.mix = best_mix(machine, step);
  }
  return choice;
}

}  // namespace gleaner::machine
