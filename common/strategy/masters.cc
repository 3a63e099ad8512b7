#include "common/strategy/masters.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

namespace gleaner::strategy {
namespace {

using collective::Groups;
using collective::MasterCounts;

// Returns whole parts of `total` in proportion to the weights (largest remainders first). Requires a weight above 0.
std::vector<uint32_t> split(uint32_t total, std::span<const double> weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<uint32_t> parts;
  std::vector<std::pair<double, size_t>> rests;
  uint32_t left = total;
  for (size_t i = 0; i < weights.size(); ++i) {
    const double exact = total * weights[i] / sum;
    parts.push_back(std::min(left, static_cast<uint32_t>(exact)));
    left -= parts.back();
    rests.emplace_back(parts.back() - exact, i);
  }
  std::ranges::sort(rests);
  for (size_t i = 0; left > 0; i = (i + 1) % rests.size(), --left) ++parts[rests[i].second];
  return parts;
}

// Returns numbers in proportion to the weights of ranks.
MasterCounts in_proportion(const Groups& groups, uint32_t chunks, const std::vector<double>& weights) {
  MasterCounts counts{std::vector<uint32_t>(weights.size()), std::vector<uint32_t>(weights.size())};
  std::vector<double> of_groups;
  const auto weight_of = [&](const std::vector<uint32_t>& group) {
    std::vector<double> of_members;
    of_members.reserve(group.size());
    for (const uint32_t rank : group) of_members.push_back(weights[rank]);
    return of_members;
  };
  for (const std::vector<uint32_t>& group : groups) {
    const std::vector<double> of_members = weight_of(group);
    of_groups.push_back(std::accumulate(of_members.begin(), of_members.end(), 0.0));
  }
  const std::vector<uint32_t> global = split(chunks, of_groups);
  for (size_t g = 0; g < groups.size(); ++g) {
    const std::vector<double> of_members = weight_of(groups[g]);
    const std::vector<uint32_t> locals = split(chunks - global[g], of_members), globals = split(global[g], of_members);
    for (size_t i = 0; i < groups[g].size(); ++i) {
      counts.global[groups[g][i]] = globals[i];
      counts.local[groups[g][i]] = globals[i] + locals[i];
    }
  }
  return counts;
}

// Moves chunks away from the rank that takes longest. When it can take no less, it is settled, and the others are
// balanced among each other.
class Descent {
 public:
  Descent(const Groups& groups, const std::vector<double>& bandwidths, MasterCounts counts)
      : groups_(groups),
        bandwidths_(bandwidths),
        counts_(std::move(counts)),
        group_of_(bandwidths.size()),
        is_settled_(bandwidths.size(), false) {
    for (uint32_t g = 0; g < groups.size(); ++g) {
      for (const uint32_t rank : groups[g]) group_of_[rank] = g;
    }
    chunks_ = std::accumulate(counts_.global.begin(), counts_.global.end(), 0.0);
  }

  MasterCounts run() {
    for (uint32_t settled = 0; settled < bandwidths_.size();) {
      if (improve() || improve_in_two_moves()) continue;
      for (const uint32_t rank : slowest()) {
        is_settled_[rank] = true;
        ++settled;
      }
    }
    return std::move(counts_);
  }

 private:
  // A change of numbers: one rank loses chunks, and another one gains them.
  struct Move {
    uint32_t from = 0, to = 0;
    int global = 0;               // chunks of which `to` becomes the global master in place of `from`
    int local = 0;                // chunks of which it becomes a local master
    double seconds = 0;           // the longest time of the ranks that take part, afterwards
    double receiver_seconds = 0;  // that of `to`; decides between moves that are equal otherwise
  };

  double seconds(uint32_t rank, int more_global = 0, int more_local = 0) const {
    const double size = static_cast<double>(groups_[group_of_[rank]].size());
    const double global = counts_.global[rank] + more_global, local = counts_.local[rank] + more_local;
    const double load = chunks_ + (size - 1) * local + (static_cast<double>(groups_.size()) - 2) * global;
    return load / bandwidths_[rank];
  }

  // Returns the ranks that take longest of those that are not settled.
  std::vector<uint32_t> slowest() const {
    double most = 0;
    for (uint32_t rank = 0; rank < bandwidths_.size(); ++rank) {
      if (!is_settled_[rank]) most = std::max(most, seconds(rank));
    }
    std::vector<uint32_t> found;
    for (uint32_t rank = 0; rank < bandwidths_.size(); ++rank) {
      if (!is_settled_[rank] && !helps(seconds(rank), most)) found.push_back(rank);
    }
    return found;
  }

  // Makes the best single move away from one of the slowest ranks. Returns whether there is one that helps.
  bool improve() {
    for (const uint32_t from : slowest()) {
      std::optional<Move> best;
      for (const Move& move : moves_from(from)) {
        if (!best.has_value() || is_better(move, *best)) best = move;
      }
      if (!best.has_value() || !helps(best->seconds, seconds(from))) continue;
      make(*best, 1);
      return true;
    }
    return false;
  }

  // Makes the best two moves of which the first leads away from a slowest rank, and the second from its receiver.
  bool improve_in_two_moves() {
    if (bandwidths_.size() > kMaxRanksForTwoMoves) return false;
    for (const uint32_t from : slowest()) {
      std::optional<std::pair<Move, Move>> best;
      for (const Move& first : moves_from(from)) {
        make(first, 1);
        for (Move second : moves_from(first.to)) {
          make(second, 1);
          second.seconds = std::max(second.seconds, seconds(from));
          make(second, -1);
          if (!best.has_value() || second.seconds < best->second.seconds) best.emplace(first, second);
        }
        make(first, -1);
      }
      if (!best.has_value() || !helps(best->second.seconds, seconds(from))) continue;
      make(best->first, 1);
      make(best->second, 1);
      return true;
    }
    return false;
  }

  static bool is_better(const Move& one, const Move& other) {
    return std::pair(one.seconds, one.receiver_seconds) < std::pair(other.seconds, other.receiver_seconds);
  }
  static bool helps(double after, double before) { return after < before * (1 - 1e-12); }

  std::vector<Move> moves_from(uint32_t from) const {
    std::vector<Move> moves;
    const bool has_global = counts_.global[from] > 0;
    const bool has_plain = counts_.local[from] > counts_.global[from];
    for (uint32_t to = 0; to < bandwidths_.size(); ++to) {
      if (to == from) continue;
      const bool same_group = group_of_[from] == group_of_[to];
      if (same_group && has_plain) moves.push_back(measured({from, to, 0, 1}));
      if (same_group && has_global) moves.push_back(measured({from, to, 1, 1}));
      // The global master of a chunk becomes a plain local master, and a local master of another chunk its global one.
      const bool takes_global = counts_.local[to] > counts_.global[to];
      if (groups_.size() > 1 && has_global && takes_global) moves.push_back(measured({from, to, 1, 0}));
    }
    return moves;
  }

  Move measured(Move move) const {
    move.receiver_seconds = seconds(move.to, move.global, move.local);
    move.seconds = std::max(seconds(move.from, -move.global, -move.local), move.receiver_seconds);
    return move;
  }

  // `sign`: 1 makes the move, and -1 takes it back.
  void make(const Move& move, int sign) {
    counts_.global[move.from] -= static_cast<uint32_t>(sign * move.global);
    counts_.local[move.from] -= static_cast<uint32_t>(sign * move.local);
    counts_.global[move.to] += static_cast<uint32_t>(sign * move.global);
    counts_.local[move.to] += static_cast<uint32_t>(sign * move.local);
  }

  // Pairs of moves take time in the square of the ranks, and win only where a rank masters few chunks.
  static constexpr size_t kMaxRanksForTwoMoves = 64;

  const Groups& groups_;
  const std::vector<double>& bandwidths_;
  MasterCounts counts_;
  std::vector<uint32_t> group_of_;
  std::vector<bool> is_settled_;
  double chunks_ = 0;
};

}  // namespace

MasterCounts even_masters(const Groups& groups, uint32_t chunks) {
  size_t ranks = 0;
  for (const std::vector<uint32_t>& group : groups) ranks += group.size();
  return in_proportion(groups, chunks, std::vector<double>(ranks, 1.0));
}

std::vector<double> loads_of(const MasterCounts& counts, const Groups& groups) {
  const double chunks = std::accumulate(counts.global.begin(), counts.global.end(), 0.0);
  std::vector<double> loads(counts.global.size());
  for (const std::vector<uint32_t>& group : groups) {
    const double size = static_cast<double>(group.size()), all = static_cast<double>(groups.size());
    for (const uint32_t rank : group) {
      const double global = counts.global[rank], plain = counts.local[rank] - global;
      loads[rank] = plain * size + global * (size - 1 + all - 1) + (chunks - plain - global);
    }
  }
  return loads;
}

double longest_time(const MasterCounts& counts, const Groups& groups, const std::vector<double>& bandwidths) {
  const std::vector<double> loads = loads_of(counts, groups);
  double most = 0;
  for (size_t rank = 0; rank < loads.size(); ++rank) most = std::max(most, loads[rank] / bandwidths[rank]);
  return most;
}

MasterCounts quicktune(const Groups& groups, uint32_t chunks, const std::vector<double>& bandwidths) {
  MasterCounts best = Descent(groups, bandwidths, in_proportion(groups, chunks, bandwidths)).run();
  MasterCounts other = Descent(groups, bandwidths, even_masters(groups, chunks)).run();
  return longest_time(best, groups, bandwidths) <= longest_time(other, groups, bandwidths) ? best : other;
}

}  // namespace gleaner::strategy
