#include "common/plan/model.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "common/plan/plan.h"

namespace gleaner::plan {
namespace {

// A smaller share is a rounding error of T·B_i - M where both terms are equal. If it becomes 0, the shares of the other
// members hardly grow; otherwise the member would own a whole partition.
constexpr double kLeastShare = 1e-9;

// Returns the bits of the busier direction of a worker per bit of gradient, if the worker owns the fraction 1 / n.
// A worker with less sends more than it receives, one with more receives more.
double traffic_at_equal_parts(double n, double r) { return r + (n - 1 - r) / n; }

// Returns the least bits that a worker moves in its busier direction per bit of gradient. With few workers and large
// pushes that is more than nothing owned: what the worker owns, it need not push.
double least_traffic(double n, double r) { return std::min(r, traffic_at_equal_parts(n, r)); }

// The fractions of the gradient that a member can own within a step time.
struct Room {
  double least = 0;
  double most = 0;
};

// Returns the room of a worker whose link carries `link` bits per bit of gradient, at least least_traffic(). Only for a
// push ratio above 1 and n >= 2.
Room room_of_worker(double n, double r, double link) {
  const double more_sent = n - 1 - r;  // by owning everything instead of nothing
  const double more_received = r * n - r - 1;
  const bool receives_most = more_sent <= 0 || link >= traffic_at_equal_parts(n, r);
  const double most = receives_most ? (link - 1) / more_received : (link - r) / more_sent;
  const double least = more_sent < 0 ? (r - link) / -more_sent : 0;
  return {std::max(0.0, least), std::max({0.0, least, most})};
}

// Returns the most that all members together could own within a step time, in seconds per bit of gradient.
double most_of_all(const Fleet& fleet, double seconds) {
  const double n = fleet.n(), r = fleet.push_ratio;
  double most = seconds * sum(fleet.summer_bits_per_second) / (n * r);
  for (double bandwidth : fleet.worker_bits_per_second) most += room_of_worker(n, r, seconds * bandwidth).most;
  return most;
}

// Returns the step time for one bit of gradient if pushes are larger than results. most_of_all() is linear between the
// times at which a worker's busier direction changes, so the least time at which it reaches 1 is found exactly.
double seconds_with_larger_pushes(const Fleet& fleet) {
  const double n = fleet.n(), r = fleet.push_ratio;
  const double least = least_traffic(n, r) / slowest_worker(fleet);
  if (most_of_all(fleet, least) >= 1) return least;
  std::vector<double> turns = {least};
  for (double bandwidth : fleet.worker_bits_per_second) {
    const double turn = traffic_at_equal_parts(n, r) / bandwidth;
    if (turn > least) turns.push_back(turn);
  }
  std::ranges::sort(turns);
  const auto is_too_short = [&](double seconds) { return most_of_all(fleet, seconds) < 1; };
  const auto after = std::ranges::partition_point(turns, is_too_short);
  const double from = *(after - 1);  // `least` is too short
  const double to = after == turns.end() ? 2 * from : *after;
  const double at_from = most_of_all(fleet, from);
  return from + (1 - at_from) / (most_of_all(fleet, to) - at_from) * (to - from);
}

// Returns the fleet whose pushes are as large as the results of `fleet`, and the reverse. Each of its bytes goes the
// other way, over links that are as fast both ways. So it has the shares of `fleet`, and its times divided by r.
Fleet mirrored(const Fleet& fleet) {
  Fleet mirror = fleet;
  mirror.push_ratio = 1 / fleet.push_ratio;
  return mirror;
}

// Returns the step time for one bit of gradient per worker.
double seconds_per_bit(const Fleet& fleet) {
  const double n = fleet.n();
  if (n == 1) return 0;
  if (fleet.push_ratio < 1) return fleet.push_ratio * seconds_per_bit(mirrored(fleet));
  if (fleet.push_ratio > 1) return seconds_with_larger_pushes(fleet);
  const double every_worker_pushes_all = 1 / slowest_worker(fleet);
  if (n == 2) return every_worker_pushes_all;
  const double everybody_busy =
      2 * (n - 1) / (sum(fleet.worker_bits_per_second) + (n - 2) / n * sum(fleet.summer_bits_per_second));
  return std::max(every_worker_pushes_all, everybody_busy);
}

absl::Status validate_bandwidths(const std::vector<double>& bandwidths, absl::string_view role) {
  for (size_t i = 0; i < bandwidths.size(); ++i) {
    // NaN fails this test, too.
    if (bandwidths[i] >= kMinBitsPerSecond && bandwidths[i] <= kMaxBitsPerSecond) continue;
    return absl::InvalidArgumentError(absl::StrCat("bandwidth of ", role, "/", i, " is ", bandwidths[i],
                                                   " bit/s; it must be between 1 bit/s and 1e18 bit/s"));
  }
  return absl::OkStatus();
}

// Returns fractions of the gradient, workers first, with which the step takes the time T = seconds_per_bit() if pushes
// are larger than results.
std::vector<double> split_with_larger_pushes(const Fleet& fleet) {
  const double n = fleet.n(), r = fleet.push_ratio;
  const double seconds = seconds_per_bit(fleet);
  std::vector<Room> rooms;
  rooms.reserve(fleet.n() + fleet.k());
  for (double bandwidth : fleet.worker_bits_per_second) rooms.push_back(room_of_worker(n, r, seconds * bandwidth));
  for (double bandwidth : fleet.summer_bits_per_second) rooms.push_back({0, seconds * bandwidth / (n * r)});
  double least = 0, spare = 0;
  for (const Room& room : rooms) {
    least += room.least;
    spare += room.most - room.least;
  }
  const double used = spare > 0 ? std::clamp((1 - least) / spare, 0.0, 1.0) : 0;
  std::vector<double> split;
  split.reserve(rooms.size());
  for (const Room& room : rooms) split.push_back(room.least + used * (room.most - room.least));
  return split;
}

// Returns the most that each member could own within the time T = seconds_per_bit(), as a fraction of M; workers first.
// The fractions add up to at least 1. Only for pushes as large as results.
std::vector<double> room(const Fleet& fleet) {
  const double n = fleet.n();
  const double seconds = seconds_per_bit(fleet);
  std::vector<double> room;
  room.reserve(fleet.n() + fleet.k());
  for (double bandwidth : fleet.worker_bits_per_second) {
    room.push_back(n > 2 ? std::max(0.0, (seconds * bandwidth - 1) / (n - 2)) : 0);
  }
  double summers = 0;
  for (double bandwidth : fleet.summer_bits_per_second) {
    room.push_back(seconds * bandwidth / n);
    summers += room.back();
  }
  if (n > 2) return room;
  // With one or two workers, a worker's own share does not slow the worker down. Two workers leave as much to the
  // summers as the summers can take, as in Eq. 1 and 2. A single worker owns the whole gradient, so that nothing moves.
  const double left = std::max(0.0, 1 - summers) / sum(fleet.worker_bits_per_second);
  for (uint32_t i = 0; i < fleet.n(); ++i) room[i] = left * fleet.worker_bits_per_second[i];
  return room;
}

}  // namespace

double sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

double slowest_worker(const Fleet& fleet) { return *std::ranges::min_element(fleet.worker_bits_per_second); }

absl::Status validate(const Fleet& fleet) {
  const size_t workers = fleet.worker_bits_per_second.size();
  const size_t summers = fleet.summer_bits_per_second.size();
  if (workers == 0) return absl::InvalidArgumentError("a job needs at least one worker; got none");
  if (workers > kMaxMembers || summers > kMaxMembers - workers) {
    return absl::InvalidArgumentError(absl::StrCat("a job has at most ", kMaxMembers, " workers and summers; got ",
                                                   workers, " workers and ", summers, " summers"));
  }
  if (!(fleet.push_ratio >= 1 / kMaxPushRatio && fleet.push_ratio <= kMaxPushRatio)) {
    return absl::InvalidArgumentError(absl::StrCat("workers push ", fleet.push_ratio,
                                                   " bytes for each byte of the result; it must be ", 1 / kMaxPushRatio,
                                                   " to ", kMaxPushRatio));
  }
  const absl::Status status = validate_bandwidths(fleet.worker_bits_per_second, "worker");
  return status.ok() ? validate_bandwidths(fleet.summer_bits_per_second, "summer") : status;
}

double bound_seconds(const Fleet& fleet, double bytes) { return seconds_per_bit(fleet) * bytes * 8; }

double slowest_worker_seconds(const Fleet& fleet, double bytes) {
  if (fleet.push_ratio < 1) return fleet.push_ratio * slowest_worker_seconds(mirrored(fleet), bytes);
  return fleet.n() == 1 ? 0 : least_traffic(fleet.n(), fleet.push_ratio) / slowest_worker(fleet) * bytes * 8;
}

std::vector<double> shares(const Fleet& fleet) {
  if (fleet.push_ratio < 1) return shares(mirrored(fleet));
  const bool larger_pushes = fleet.n() > 1 && fleet.push_ratio > 1;
  std::vector<double> shares = larger_pushes ? split_with_larger_pushes(fleet) : room(fleet);
  const double total = sum(shares);
  for (double& share : shares) share = share / total < kLeastShare ? 0 : share / total;
  const double kept = sum(shares);
  for (double& share : shares) share /= kept;
  return shares;
}

std::vector<double> traffic_bytes(const Fleet& fleet, const std::vector<uint64_t>& owned) {
  const double n = fleet.n(), r = fleet.push_ratio;
  const double stream = static_cast<double>(std::accumulate(owned.begin(), owned.end(), uint64_t{0}));
  std::vector<double> traffic(owned.size());
  for (size_t member = 0; member < owned.size(); ++member) {
    const auto bytes = static_cast<double>(owned[member]);
    const double sent = r * (stream - bytes) + (n - 1) * bytes;
    const double received = stream - bytes + r * (n - 1) * bytes;
    traffic[member] = member < fleet.n() ? std::max(sent, received) : std::max(r, 1.0) * n * bytes;
  }
  return traffic;
}

double step_seconds(const Fleet& fleet, const std::vector<uint64_t>& owned) {
  const std::vector<double> traffic = traffic_bytes(fleet, owned);
  double slowest = 0;
  for (size_t member = 0; member < traffic.size(); ++member) {
    slowest = std::max(slowest, traffic[member] * 8 / fleet.bits_per_second(member));
  }
  return slowest;
}

}  // namespace gleaner::plan
