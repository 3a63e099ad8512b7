#include "common/ranks/annealing.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/ranks/map_cost.h"
#include "common/ranks/path_table.h"
#include "common/ranks/random.h"

namespace gleaner::ranks {
namespace {

constexpr uint32_t kMaxExactHosts = 8;
constexpr uint32_t kChains = 8;
constexpr size_t kCheapest = kMostTimedMaps - 2;  // beside the identity and the map of least cost

// A change of an order of hosts, whose first entries are the hosts of the ranks.
struct Move {
  enum class Kind : uint8_t { kExchange, kReverse, kRotate };
  Kind kind = Kind::kExchange;
  uint32_t begin = 0;
  uint32_t end = 0;    // kExchange: the other position
  uint32_t shift = 0;  // of kRotate, to the left
};

// Draws a move on an order of `hosts` hosts, of which the first `ranks` have a rank. Requires ranks >= 2, or at least
// one more host than ranks.
Move draw_move(Random& random, uint32_t ranks, uint32_t hosts) {
  if (ranks < 3 || random.below(2) == 0) {
    const uint32_t position = random.below(ranks);
    const uint32_t other = random.below(hosts - 1);
    return {Move::Kind::kExchange, position, other + (other >= position), 0};
  }
  // Short and long sub-arrays are equally frequent.
  const uint32_t most = std::min<uint32_t>(ranks, 2u << random.below(static_cast<uint32_t>(std::bit_width(ranks - 1))));
  const uint32_t length = 2 + random.below(most - 1);
  const uint32_t begin = random.below(ranks - length + 1);
  if (random.below(2) == 0) return {Move::Kind::kReverse, begin, begin + length, 0};
  return {Move::Kind::kRotate, begin, begin + length, 1 + random.below(length - 1)};
}

void make_move(const Move& move, RankMap& order) {
  const auto begin = order.begin() + move.begin, end = order.begin() + move.end;
  if (move.kind == Move::Kind::kExchange) std::swap(*begin, *end);
  if (move.kind == Move::Kind::kReverse) std::reverse(begin, end);
  if (move.kind == Move::Kind::kRotate) std::rotate(begin, begin + move.shift, end);
}

struct Remembered {
  double energy = 0;
  RankMap host_of;
};

void undo_move(Move move, RankMap& order) {
  if (move.kind == Move::Kind::kRotate) move.shift = move.end - move.begin - move.shift;
  make_move(move, order);
}

class Search {
 public:
  Search(MapCost cost, const PathTable& paths, uint32_t ranks, uint32_t hosts, const SearchOptions& options)
      : cost_(std::move(cost)), paths_(paths), ranks_(ranks), hosts_(hosts), options_(options), random_(options.seed) {}

  absl::StatusOr<FoundMap> run() {
    begin();
    if (is_at_bound()) return finish(Proof::kBound);
    if (hosts_ <= kMaxExactHosts) {
      const bool all = try_all();
      return finish(all ? Proof::kAll : Proof::kNone);
    }
    const uint64_t iterations = options_.iterations != 0 ? options_.iterations : default_iterations();
    // First a hot run, which forgets where it begins, then a cool one from the best map so far.
    const double spread = typical_increase();
    if (spread > 0) {
      anneal(0, iterations / 2, iterations, spread);
      take(best_order_);
      anneal(iterations / 2, iterations, iterations, spread * 0.03);
    }
    return finish(is_at_bound() ? Proof::kBound : Proof::kNone);
  }

 private:
  // Evaluates the identity and the other starts, and takes the best.
  void begin() {
    take(identity(hosts_));
    best_order_ = order_;
    best_ = value_;
    bound_seconds_ = cost_.bound_seconds();
    for (const RankMap& start : options_.starts) {
      take(with_other_hosts(start, hosts_));
      keep_if_best();
    }
    // Chains from several hosts, as only one of them may begin in the best place for fewer ranks than hosts.
    for (uint32_t i = 0; i < std::min(hosts_, kChains) && hosts_ > kMaxExactHosts && !is_at_bound(); ++i) {
      take(chain_from(static_cast<uint32_t>(uint64_t{i} * hosts_ / kChains)));
      keep_if_best();
    }
    take(best_order_);
  }

  // Returns an order in which each host is followed by the nearest one of those that are left: the one to which a
  // message takes least time, then the one with the fewest links between.
  RankMap chain_from(uint32_t first) const {
    RankMap order = {first}, left = identity(hosts_);
    left.erase(left.begin() + first);
    while (!left.empty()) {
      const auto distance = [&](uint32_t host) {
        return std::pair(cost_.message_seconds(order.back(), host), paths_.channels(order.back(), host).size());
      };
      size_t nearest = 0;
      auto least = distance(left[0]);
      for (size_t i = 1; i < left.size(); ++i) {
        const auto here = distance(left[i]);
        if (here >= least) continue;
        least = here;
        nearest = i;
      }
      order.push_back(left[nearest]);
      left.erase(left.begin() + static_cast<std::ptrdiff_t>(nearest));
    }
    return order;
  }

  void take(const RankMap& order) {
    order_ = order;
    value_ = cost_.evaluate(order_);
    ++found_.evaluated;
  }

  // The margin keeps equal costs that differ by rounding from replacing each other.
  void keep_if_best() {
    remember();
    const double margin = 1e-12 * best_.seconds;
    const bool cheaper = value_.seconds < best_.seconds - margin;
    const bool equal = value_.seconds <= best_.seconds;
    if (!cheaper && !(equal && value_.energy < best_.energy - margin)) return;
    best_ = value_;
    best_order_ = order_;
  }

  // Keeps the map for the last choice if it is one of the cheapest. Maps with equal energies are alike, as the
  // rotations of a ring are.
  void remember() {
    if (!options_.seconds_of) return;
    const auto at = std::ranges::lower_bound(cheapest_, value_.energy * (1 - 1e-9), {}, &Remembered::energy);
    if (at == cheapest_.end() && cheapest_.size() == kCheapest) return;
    if (at != cheapest_.end() && at->energy <= value_.energy * (1 + 1e-9)) return;
    cheapest_.insert(at, {value_.energy, ranks_of(order_)});
    if (cheapest_.size() > kCheapest) cheapest_.pop_back();
  }

  RankMap ranks_of(const RankMap& order) const { return {order.begin(), order.begin() + ranks_}; }

  bool is_at_bound() const { return best_.seconds <= bound_seconds_ * (1 + 1e-12); }

  // Returns whether all maps were tried.
  bool try_all() {
    RankMap order = identity(hosts_);
    const double maps = std::tgamma(hosts_ + 1.0) / std::tgamma(hosts_ - ranks_ + 1.0);
    for (uint64_t tried = 1;; ++tried) {
      // The hosts without a rank stay in descending order, so that the next permutation changes a rank.
      std::sort(order.begin() + ranks_, order.end(), std::greater<>());
      if (!std::next_permutation(order.begin(), order.end())) return true;
      std::sort(order.begin() + ranks_, order.end());
      take(order);
      keep_if_best();
      if (tried % 256 == 0 && !goes_on(static_cast<double>(tried) / maps)) return false;
    }
  }

  // Returns the mean increase of the energy by a random move that increases it; 0: no move did.
  double typical_increase() {
    double sum = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < 200; ++i) {
      const Move move = draw_move(random_, ranks_, hosts_);
      make_move(move, order_);
      const double energy = cost_.evaluate(order_).energy;
      undo_move(move, order_);
      if (energy <= value_.energy) continue;
      sum += energy - value_.energy;
      ++count;
    }
    found_.evaluated += 200;
    return count == 0 ? 0 : sum / count;
  }

  // Does the iterations from `first` to `last` of `all` while the temperature falls by a factor of 1,000.
  void anneal(uint64_t first, uint64_t last, uint64_t all, double temperature) {
    const double cooling = std::pow(1e-3, 1.0 / static_cast<double>(std::max<uint64_t>(last - first, 1)));
    for (uint64_t i = first; i < last && !found_.stopped && !is_at_bound(); ++i) {
      step(temperature);
      temperature *= cooling;
      if (i % 256 == 255) goes_on(static_cast<double>(i) / static_cast<double>(all));
    }
  }

  void step(double temperature) {
    const Move move = draw_move(random_, ranks_, hosts_);
    // Metropolis' rule: an increase d is accepted with the probability exp(-d / temperature).
    const double limit = value_.energy - temperature * std::log(1 - random_.uniform());
    make_move(move, order_);
    ++found_.evaluated;
    const MapCost::Value value = cost_.evaluate(order_);
    if (value.energy > limit) return undo_move(move, order_);
    value_ = value;
    keep_if_best();
  }

  bool goes_on(double done) {
    if (options_.go_on && !options_.go_on(done)) found_.stopped = true;
    return !found_.stopped;
  }

  // Chosen such that a search visits about a million messages and channels for each rank.
  uint64_t default_iterations() const {
    const double visits = std::min(1e6 * ranks_, 1e9);
    return static_cast<uint64_t>(std::clamp(visits / std::max(cost_.visits(), 1.0), 1e3, 2e6));
  }

  absl::StatusOr<FoundMap> finish(Proof proof) {
    found_.host_of = ranks_of(best_order_);
    found_.proof = proof;
    if (!options_.seconds_of) {
      found_.seconds = best_.seconds;
      found_.identity_seconds = cost_.evaluate(identity(hosts_)).seconds;
      return std::move(found_);
    }
    GLN_ASSIGN_OR_RETURN(found_.identity_seconds, options_.seconds_of(identity(ranks_)));
    GLN_ASSIGN_OR_RETURN(found_.seconds, options_.seconds_of(found_.host_of));
    std::vector<RankMap> others = {identity(ranks_)};
    others.insert(others.end(), options_.starts.begin(), options_.starts.end());
    for (Remembered& map : cheapest_) others.push_back(std::move(map.host_of));
    for (const RankMap& map : others) {
      GLN_ASSIGN_OR_RETURN(const double seconds, options_.seconds_of(map));
      if (seconds >= found_.seconds * (1 - 1e-9)) continue;
      found_.seconds = seconds;
      found_.host_of = map;
    }
    return std::move(found_);
  }

  MapCost cost_;
  const PathTable& paths_;
  const uint32_t ranks_, hosts_;
  const SearchOptions& options_;
  Random random_;
  RankMap order_, best_order_;
  std::vector<Remembered> cheapest_;  // ascending energies
  MapCost::Value value_, best_;
  double bound_seconds_ = 0;
  FoundMap found_;
};

}  // namespace

absl::StatusOr<FoundMap> find_rank_map(const collective::Schedule& schedule, const topology::Network& network,
                                       uint64_t bytes, const SearchOptions& options) {
  const uint32_t hosts = network.topology.host_count();
  if (hosts > kMaxSearchHosts) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the topology has ", hosts, " hosts; the search for a rank map takes ", kMaxSearchHosts, " at most"));
  }
  GLN_RETURN_IF_ERROR(check_map(identity(schedule.ranks), schedule.ranks, hosts));
  for (const RankMap& start : options.starts) GLN_RETURN_IF_ERROR(check_map(start, schedule.ranks, hosts));
  GLN_ASSIGN_OR_RETURN(const std::vector<collective::StepPattern> patterns, collective::step_patterns(schedule));
  const PathTable paths(network);
  MapCost cost(patterns, schedule.ranks, schedule.chunks_per_block(), network.topology, paths, bytes);
  return Search(std::move(cost), paths, schedule.ranks, hosts, options).run();
}

}  // namespace gleaner::ranks
