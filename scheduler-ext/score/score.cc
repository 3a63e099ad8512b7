#include "scheduler-ext/score/score.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "common/placement/node_labels.h"

namespace gleaner::extender {
namespace {

using placement::Machine;
using placement::Verdict;

Scores score_summer(const Snapshot& snapshot) {
  Scores result;
  result.scores.resize(snapshot.machines.size());
  std::vector<Verdict> verdicts(snapshot.machines.size());
  const auto better = [&](size_t one, size_t other) {
    return std::tie(verdicts[one].score, verdicts[one].bits_per_second, snapshot.machines[other]->name) >
           std::tie(verdicts[other].score, verdicts[other].bits_per_second, snapshot.machines[one]->name);
  };
  for (size_t i = 0; i < verdicts.size(); ++i) {
    if (snapshot.machines[i] == nullptr) continue;
    verdicts[i] = placement::judge_summer(*snapshot.machines[i], snapshot.request, snapshot.now);
    if (verdicts[i].fits && (!result.best || better(i, *result.best))) result.best = i;
  }
  if (!result.best) return result;
  const double most = std::max(1u, verdicts[*result.best].score);
  for (size_t i = 0; i < verdicts.size(); ++i) {
    result.scores[i] = static_cast<int>(std::lround((kMaxScore - 1) * verdicts[i].score / most));
  }
  result.scores[*result.best] = kMaxScore;
  result.bits_per_second = verdicts[*result.best].bits_per_second;
  return result;
}

Scores score_worker(const Snapshot& snapshot, const placement::LabelLevels& levels) {
  std::vector<const absl::flat_hash_map<std::string, std::string>*> placed;
  placed.reserve(snapshot.placed.size());
  for (const auto& machine : snapshot.placed) placed.push_back(&machine->labels);
  placement::Neighbourhood neighbourhood(placed, levels);
  Scores result;
  result.scores.reserve(snapshot.machines.size());
  for (const auto& machine : snapshot.machines) {
    const uint32_t hundredths = machine == nullptr ? 0 : neighbourhood.score(machine->labels);
    result.scores.push_back(static_cast<int>(std::lround(hundredths * kMaxScore / 100.0)));
  }
  return result;
}

}  // namespace

Scores score(const placement::Pod& pod, const Snapshot& snapshot, const placement::LabelLevels& levels) {
  if (pod.role == "worker") return score_worker(snapshot, levels);
  if (pod.role == "summer" && snapshot.known) return score_summer(snapshot);
  Scores nothing;
  nothing.scores.resize(snapshot.machines.size());
  return nothing;
}

}  // namespace gleaner::extender
