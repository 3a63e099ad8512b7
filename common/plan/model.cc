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

double sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

double slowest_worker(const Fleet& fleet) { return *std::ranges::min_element(fleet.worker_bits_per_second); }

// Returns the step time for one bit of gradient per worker.
double seconds_per_bit(const Fleet& fleet) {
  const double n = fleet.n();
  if (n == 1) return 0;
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

// Returns the most that each member could own within the time T = seconds_per_bit(), as a fraction of M; workers first.
// The fractions add up to at least 1.
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

absl::Status validate(const Fleet& fleet) {
  const size_t workers = fleet.worker_bits_per_second.size();
  const size_t summers = fleet.summer_bits_per_second.size();
  if (workers == 0) return absl::InvalidArgumentError("a job needs at least one worker; got none");
  if (workers > kMaxMembers || summers > kMaxMembers - workers) {
    return absl::InvalidArgumentError(absl::StrCat("a job has at most ", kMaxMembers, " workers and summers; got ",
                                                   workers, " workers and ", summers, " summers"));
  }
  const absl::Status status = validate_bandwidths(fleet.worker_bits_per_second, "worker");
  return status.ok() ? validate_bandwidths(fleet.summer_bits_per_second, "summer") : status;
}

double bound_seconds(const Fleet& fleet, double bytes) { return seconds_per_bit(fleet) * bytes * 8; }

std::vector<double> shares(const Fleet& fleet) {
  std::vector<double> shares = room(fleet);
  const double total = sum(shares);
  for (double& share : shares) share = share / total < kLeastShare ? 0 : share / total;
  const double kept = sum(shares);
  for (double& share : shares) share /= kept;
  return shares;
}

std::vector<double> traffic_bytes(const Fleet& fleet, const std::vector<uint64_t>& owned) {
  const double n = fleet.n();
  const double stream = static_cast<double>(std::accumulate(owned.begin(), owned.end(), uint64_t{0}));
  std::vector<double> traffic(owned.size());
  for (size_t member = 0; member < owned.size(); ++member) {
    const auto bytes = static_cast<double>(owned[member]);
    traffic[member] = member < fleet.n() ? stream + (n - 2) * bytes : n * bytes;
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
