#include "cli/timeline/clocks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

namespace gleaner::cli {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::infinity();
constexpr double kWindow = 1e9;  // nanoseconds; find_rate() takes one offset from each window of about this length
constexpr int kMostWindows = 32;
constexpr int kFewestWindows = 4;
constexpr double kFastest = 500e-6;  // a working clock does not drift more than this

// A frame between members a and b (a < b). All times are nanoseconds since the origin of the clock that measured them.
struct Delay {
  double at = 0;           // when the frame left or reached a, on a's clock
  double nanoseconds = 0;  // arrival on the receiver's clock minus departure on the sender's clock
};
struct Edge {
  std::vector<Delay> there, back;  // frames from a to b, and from b to a
};

// The difference between the clocks of b and a, each relative to its origin, when a's clock shows t:
// b - a = offset + rate * t.
struct Relation {
  double offset = 0;
  double rate = 0;
  double uncertainty = kUnknown;
};

// Returns the least delay of the frames in [begin, end), each reduced by the contribution of the rate.
double least(const std::vector<Delay>& delays, double rate, double begin, double end) {
  double least = kUnknown;
  for (const Delay& delay : delays) {
    if (delay.at >= begin && delay.at < end) least = std::min(least, delay.nanoseconds - rate * delay.at);
  }
  return least;
}

struct Point {
  double x = 0, y = 0;
};

// Returns the slope of the least-squares line through the points. Returns 0 if there are too few points, if the slope
// is not above three times its standard error, or if it is too large for a working clock.
double slope(const std::vector<Point>& points) {
  const double n = static_cast<double>(points.size());
  if (points.size() < kFewestWindows) return 0;
  Point mean;
  for (const Point& point : points) mean = {mean.x + point.x / n, mean.y + point.y / n};
  double xx = 0, xy = 0;
  for (const Point& point : points) {
    xx += (point.x - mean.x) * (point.x - mean.x);
    xy += (point.x - mean.x) * (point.y - mean.y);
  }
  const double found = xy / xx;
  double residuals = 0;
  for (const Point& point : points) {
    const double residual = point.y - mean.y - found * (point.x - mean.x);
    residuals += residual * residual;
  }
  const double error = std::sqrt(residuals / (n - 2) / xx);
  return std::abs(found) > 3 * error && std::abs(found) < kFastest ? found : 0;
}

double find_rate(const Edge& edge) {
  double first = kUnknown, last = -kUnknown;
  for (const auto* delays : {&edge.there, &edge.back}) {
    for (const Delay& delay : *delays) {
      first = std::min(first, delay.at);
      last = std::max(last, delay.at);
    }
  }
  const int windows = std::clamp(static_cast<int>((last - first) / kWindow), 1, kMostWindows);
  const double width = (last - first) / windows + 1;
  std::vector<Point> offsets;
  for (int i = 0; i < windows; ++i) {
    const double begin = first + i * width;
    const double there = least(edge.there, 0, begin, begin + width);
    const double back = least(edge.back, 0, begin, begin + width);
    if (there < kUnknown && back < kUnknown) offsets.push_back({begin + width / 2, (there - back) / 2});
  }
  return slope(offsets);
}

Relation relate(const Edge& edge) {
  if (edge.there.empty() || edge.back.empty()) return {};
  Relation relation;
  relation.rate = find_rate(edge);
  const double there = least(edge.there, relation.rate, -kUnknown, kUnknown);
  const double back = least(edge.back, -relation.rate, -kUnknown, kUnknown);
  relation.offset = (there - back) / 2;
  relation.uncertainty = std::max(0.0, (there + back) / 2);
  return relation;
}

std::vector<int64_t> origins(uint32_t members, std::span<const Crossing> crossings) {
  constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  std::vector<int64_t> first(members, kNone);
  for (const Crossing& crossing : crossings) {
    first[crossing.from] = std::min(first[crossing.from], crossing.departed);
    first[crossing.to] = std::min(first[crossing.to], crossing.arrived);
  }
  return first;
}

using Edges = std::map<std::pair<uint32_t, uint32_t>, Edge>;  // by pair of members, the smaller index first

Edges collect(std::span<const Crossing> crossings, const std::vector<int64_t>& origin) {
  Edges edges;
  for (const Crossing& crossing : crossings) {
    const auto departed = static_cast<double>(crossing.departed - origin[crossing.from]);
    const auto arrived = static_cast<double>(crossing.arrived - origin[crossing.to]);
    if (crossing.from < crossing.to) {
      edges[{crossing.from, crossing.to}].there.push_back({departed, arrived - departed});
    } else {
      edges[{crossing.to, crossing.from}].back.push_back({arrived, arrived - departed});
    }
  }
  return edges;
}

// Returns the fit of a member from its relation to a member whose fit is known. The relation is that of the pair (a,
// b); `forward`: the fit of a is known and that of b is returned. `origin` is that of the returned fit.
ClockFit compose(const ClockFit& known, const Relation& relation, bool forward, int64_t origin) {
  ClockFit fit;
  fit.origin = origin;
  fit.uncertainty = known.uncertainty + relation.uncertainty;
  if (forward) {  // b from a: a = (b - offset) / (1 + rate)
    fit.rate = known.rate / (1 + relation.rate);
    fit.base = known.base - fit.rate * relation.offset;
  } else {  // a from b: b = offset + (1 + rate) * a
    fit.rate = known.rate * (1 + relation.rate);
    fit.base = known.base + known.rate * relation.offset;
  }
  return fit;
}

// The least delay of frames, by sender and receiver.
using LeastDelays = std::map<std::pair<uint32_t, uint32_t>, double>;

// Returns by member the least sum of delays along a chain of frames from `start`, or to `start` if `backward`
// (Bellman-Ford: delays may be negative, since clocks differ, but the sum along a cycle is not).
std::vector<double> chains(const LeastDelays& delays, uint32_t members, uint32_t start, bool backward) {
  std::vector<double> sums(members, kUnknown);
  sums[start] = 0;
  bool changed = true;
  for (uint32_t round = 0; round < members && changed; ++round) {
    changed = false;
    for (const auto& [pair, delay] : delays) {
      const auto [near, far] = backward ? std::pair(pair.second, pair.first) : pair;
      if (!(sums[near] + delay < sums[far])) continue;
      sums[far] = sums[near] + delay;
      changed = true;
    }
  }
  return sums;
}

// The bounds of all members' clocks relative to the reference, by the frames that left in one part of the trace.
struct Cycles {
  double middle = 0;  // of this part of the trace
  std::vector<double> there, back;
  bool relates(uint32_t member) const { return there[member] < kUnknown && back[member] < kUnknown; }
  double offset(uint32_t member) const { return (there[member] - back[member]) / 2; }
  double uncertainty(uint32_t member) const { return std::max(0.0, (there[member] + back[member]) / 2); }
};

Cycles find_cycles(uint32_t members, std::span<const Crossing> crossings, const std::vector<int64_t>& origin,
                   uint32_t reference, double begin, double end) {
  LeastDelays delays;
  for (const Crossing& crossing : crossings) {
    const auto departed = static_cast<double>(crossing.departed - origin[crossing.from]);
    if (departed < begin || departed >= end) continue;
    const double delay = static_cast<double>(crossing.arrived - origin[crossing.to]) - departed;
    const auto [place, added] = delays.emplace(std::pair(crossing.from, crossing.to), delay);
    if (!added) place->second = std::min(place->second, delay);
  }
  return {(begin + end) / 2, chains(delays, members, reference, false), chains(delays, members, reference, true)};
}

// Returns the relation of a member's clock to the reference's. `parts`: of the whole trace. A rate is found from parts.
Relation relate(uint32_t member, const Cycles& whole, const std::vector<Cycles>& parts) {
  std::vector<Point> points;
  Point mean;
  for (const Cycles& part : parts) {
    if (part.relates(member)) points.push_back({part.middle, part.offset(member)});
  }
  const double rate = slope(points);
  if (rate == 0) return {whole.offset(member), 0, whole.uncertainty(member)};
  const auto n = static_cast<double>(points.size());
  for (const Point& point : points) mean = {mean.x + point.x / n, mean.y + point.y / n};
  Relation relation{mean.y - rate * mean.x, rate, 0};
  for (const Cycles& part : parts) {
    if (!part.relates(member)) continue;
    const double residual = std::abs(part.offset(member) - relation.offset - rate * part.middle);
    relation.uncertainty = std::max(relation.uncertainty, part.uncertainty(member) + residual);
  }
  return relation;
}

// Fits the members that exchange frames in cycles alone, as in a ring, where no pair has frames in both directions.
void fit_cycles(std::span<const Crossing> crossings, const std::vector<int64_t>& origin, uint32_t reference,
                std::vector<std::optional<ClockFit>>& fits) {
  const auto members = static_cast<uint32_t>(fits.size());
  const Cycles whole = find_cycles(members, crossings, origin, reference, -kUnknown, kUnknown);
  double last = 0;
  for (const Crossing& crossing : crossings) {
    last = std::max(last, static_cast<double>(crossing.departed - origin[crossing.from]));
  }
  const int windows = std::clamp(static_cast<int>(last / kWindow), 1, kMostWindows);
  std::vector<Cycles> parts;
  for (int i = 0; i < windows; ++i) {
    const double width = last / windows + 1;
    parts.push_back(find_cycles(members, crossings, origin, reference, i * width, (i + 1) * width));
  }
  for (uint32_t member = 0; member < members; ++member) {
    if (fits[member].has_value() || !whole.relates(member)) continue;
    fits[member] = compose(*fits[reference], relate(member, whole, parts), true, origin[member]);
  }
}

}  // namespace

std::vector<std::optional<ClockFit>> fit_clocks(uint32_t members, std::span<const Crossing> crossings) {
  constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  std::vector<std::optional<ClockFit>> fits(members);
  if (members == 0) return fits;
  const std::vector<int64_t> origin = origins(members, crossings);
  const auto first = std::find_if(origin.begin(), origin.end(), [](int64_t time) { return time != kNone; });
  if (first == origin.end()) {
    fits[0] = ClockFit();
    return fits;
  }
  std::map<std::pair<uint32_t, uint32_t>, Relation> relations;
  for (const auto& [pair, edge] : collect(crossings, origin)) relations[pair] = relate(edge);
  const auto reference = static_cast<uint32_t>(first - origin.begin());
  fits[reference] = ClockFit{.origin = origin[reference]};
  // Dijkstra's algorithm: each round fits the member, of those without a fit, that gets the smallest uncertainty.
  while (true) {
    std::optional<ClockFit> best;
    uint32_t whose = 0;
    for (const auto& [pair, relation] : relations) {
      const auto [a, b] = pair;
      if (relation.uncertainty == kUnknown || fits[a].has_value() == fits[b].has_value()) continue;
      const bool forward = fits[a].has_value();
      const uint32_t next = forward ? b : a;
      const ClockFit fit = compose(forward ? *fits[a] : *fits[b], relation, forward, origin[next]);
      if (best.has_value() && best->uncertainty <= fit.uncertainty) continue;
      best = fit;
      whose = next;
    }
    if (!best.has_value()) break;
    fits[whose] = best;
  }
  const auto lacks = [&](uint32_t member) { return origin[member] != kNone && !fits[member].has_value(); };
  for (uint32_t member = 0; member < members; ++member) {
    if (!lacks(member)) continue;
    fit_cycles(crossings, origin, reference, fits);
    break;
  }
  return fits;
}

}  // namespace gleaner::cli
