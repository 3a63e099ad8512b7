#include "common/plan/routed_bound.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/plan/linear_program.h"

namespace gleaner::plan {
namespace {

// Times that differ by less are equal.
constexpr double kNear = 1e-9;
// The most by which the shares may miss the proven bound.
constexpr double kTooFar = 1e-6;
// Channels that are added at once.
constexpr size_t kRowsAtOnce = 64;
// How many times the even share a member may own: one after the other, as long as the bound can be reached.
constexpr double kExcesses[] = {4, 2, 1.5, 1.2, 1.1, 1.05};

// The most that a member's own links let it own in time T: slope·T - offset.
struct OwnLimit {
  double slope = 0;  // for each second per byte of the vector
  double offset = 0;
};

std::vector<OwnLimit> own_limits(const Fleet& fleet) {
  const double workers = fleet.n();
  std::vector<OwnLimit> limits;
  for (const double bits_per_second : fleet.worker_bits_per_second) {
    // Each of two workers moves the whole vector, whatever it owns, so no time below that of the slower one counts.
    if (fleet.n() == 2) {
      limits.push_back({slowest_worker(fleet) / 8, 0});
    } else {
      limits.push_back({bits_per_second / 8 / (workers - 2), 1 / (workers - 2)});
    }
  }
  for (const double bits_per_second : fleet.summer_bits_per_second) {
    limits.push_back({bits_per_second / 8 / workers, 0});
  }
  return limits;
}

// A row of the program: Σ coefficients·y <= limit, in its units.
struct ProgramRow {
  std::vector<double> coefficients;
  double limit = 0;
};

// The units of the program: T_0 for times, and the mean share for shares.
class RoutedProgram {
 public:
  RoutedProgram(const LinkLoads& loads, const Fleet& fleet)
      : loads_(loads),
        even_(shares(fleet)),
        own_(own_limits(fleet)),
        count_(static_cast<double>(own_.size())),
        program_(std::vector<double>(own_.size(), 1)),
        has_row_(loads.routes().size()) {
    double offsets = 0;
    for (const OwnLimit& limit : own_) {
      slopes_ += limit.slope;
      offsets += limit.offset;
    }
    unit_ = (1 + offsets) / slopes_;
    slopes_ *= unit_;
    for (OwnLimit& limit : own_) limit.slope *= unit_;
    for (const LinkLoads::Link& link : loads.links()) {
      seconds_per_byte_.push_back(8 / link.there_bits_per_second / unit_);
      seconds_per_byte_.push_back(8 / link.back_bits_per_second / unit_);
    }
  }

  absl::StatusOr<RoutedBound> solve() {
    GLN_RETURN_IF_ERROR(find_bound());
    make_even();
    RoutedBound bound{bound_ * unit_, shares_, {}};
    const std::vector<double> times = times_of(shares_);
    for (size_t i = 0; i < loads_.links().size(); ++i) {
      if (std::max(times[2 * i], times[2 * i + 1]) < bound_ * (1 - kTooFar)) continue;
      bound.limits.push_back(loads_.links()[i].link);
    }
    return bound;
  }

 private:
  // Returns the time for which each channel is busy.
  std::vector<double> times_of(const std::vector<double>& shares) const {
    std::vector<double> times;
    for (const LinkLoads::LinkLoad& load : loads_.of(shares)) {
      for (const LinkLoads::Load& way : {load.there, load.back}) {
        times.push_back((way.pushes + way.results) * seconds_per_byte_[times.size()]);
      }
    }
    return times;
  }

  double slowest(const std::vector<double>& shares) const { return std::ranges::max(times_of(shares)); }

  // Returns the row of Σ of_share·x - of_time·T <= limit.
  ProgramRow row_of(const std::vector<double>& of_share, double of_time, double limit) const {
    // Σ of_share·x is slope·T - offset - Σ of_share·y.
    double slope = -of_time, offset = 0;
    for (size_t member = 0; member < own_.size(); ++member) {
      slope += of_share[member] * own_[member].slope;
      offset += of_share[member] * own_[member].offset;
    }
    ProgramRow row{std::vector<double>(own_.size(), slope / slopes_), count_ * (limit + offset - slope)};
    for (size_t member = 0; member < own_.size(); ++member) row.coefficients[member] -= of_share[member];
    return row;
  }

  ProgramRow row_of_channel(size_t channel) const {
    std::vector<double> of_share(own_.size(), 0);
    for (const LinkLoads::Routes& routes : loads_.routes()[channel]) {
      of_share[routes.owner] = (routes.pushes + routes.results) * seconds_per_byte_[channel];
    }
    return row_of(of_share, 1, 0);
  }

  // Returns the row of sign·x_member <= limit.
  ProgramRow row_of_member(size_t member, double sign, double limit) const {
    std::vector<double> of_share(own_.size(), 0);
    of_share[member] = sign;
    return row_of(of_share, 0, limit);
  }

  void add(ProgramRow row) {
    program_.add_row(row.coefficients, row.limit);
    rows_.push_back(std::move(row));
  }

  // Adds the slowest channels that take longer than the program says. Returns false if there is none.
  bool add_overloaded() {
    const std::vector<double> times = times_of(shares_);
    std::vector<size_t> overloaded;
    for (size_t channel = 0; channel < times.size(); ++channel) {
      if (!has_row_[channel] && times[channel] > time_ * (1 + kNear)) overloaded.push_back(channel);
    }
    std::ranges::stable_sort(overloaded, std::ranges::greater(), [&](size_t channel) { return times[channel]; });
    overloaded.resize(std::min(overloaded.size(), kRowsAtOnce));
    for (const size_t channel : overloaded) {
      add(row_of_channel(channel));
      has_row_[channel] = true;
    }
    return !overloaded.empty();
  }

  // Adds limits of shares below 0. Returns false if there is none.
  bool add_negative() {
    bool added = false;
    for (size_t member = 0; member < own_.size(); ++member) {
      if (shares_[member] * count_ >= -kNear) continue;
      add(row_of_member(member, -1, 0));
      added = true;
    }
    return added;
  }

  // Adds limits of shares that are too uneven. Returns false if there is none.
  bool add_excessive(double excess) {
    bool added = false;
    for (size_t member = 0; member < own_.size(); ++member) {
      const double most = excess * std::max(even_[member], 1 / count_);
      if (shares_[member] <= most * (1 + kTooFar)) continue;
      add(row_of_member(member, 1, most));
      added = true;
    }
    return added;
  }

  // Solves the program with its present rows, and sets time_ and shares_. NotFound: the time is longer than `most`.
  absl::Status minimize(double most) {
    GLN_RETURN_IF_ERROR(program_.minimize((most - 1) * count_ * slopes_));
    const std::vector<double> unused = program_.solution();
    time_ = 1 + program_.value() / count_ / slopes_;
    shares_.clear();
    for (size_t member = 0; member < own_.size(); ++member) {
      shares_.push_back(own_[member].slope * time_ - own_[member].offset - unused[member] / count_);
    }
    return absl::OkStatus();
  }

  void remove_rounding() {
    for (double& share : shares_) share = std::max(share, 0.0);
    const double sum = std::accumulate(shares_.begin(), shares_.end(), 0.0);
    for (double& share : shares_) share /= sum;
  }

  absl::Status find_bound() {
    for (bool has_more = true; has_more;) {
      GLN_RETURN_IF_ERROR(minimize(std::numeric_limits<double>::infinity()));
      has_more = add_overloaded();
      has_more |= add_negative();
    }
    remove_rounding();
    bound_ = proven_time();
    const double time = slowest(shares_);
    if (time <= bound_ * (1 + kTooFar)) return absl::OkStatus();
    return absl::InternalError(absl::StrCat("rounding errors: the best shares that were found take ", time * unit_,
                                            " s for each byte, and the proof says ", bound_ * unit_));
  }

  // Returns the time that the prices y of the rows prove: for y >= 0 with 1 + yA >= 0, Σ of any solution is -y·b or
  // more.
  double proven_time() const {
    const std::vector<double> prices = program_.prices();
    std::vector<double> reduced(own_.size(), 1);
    double value = 0;
    for (size_t i = 0; i < prices.size(); ++i) {
      if (prices[i] == 0) continue;
      value -= prices[i] * rows_[i].limit;
      for (size_t member = 0; member < own_.size(); ++member) {
        reduced[member] += prices[i] * rows_[i].coefficients[member];
      }
    }
    // Lower prices make up for rounding errors that leave a reduced cost below 0.
    const double least = std::min(std::ranges::min(reduced), 0.0);
    return 1 + value / (1 - least) / count_ / slopes_;
  }

  // Replaces the shares by more even ones that reach the bound, too.
  void make_even() {
    if (slowest(even_) <= bound_ * (1 + kNear)) {
      shares_ = even_;
      return;
    }
    std::vector<double> best = shares_;
    for (const double excess : kExcesses) {
      if (!find_shares(excess)) break;
      best = shares_;
    }
    shares_ = std::move(best);
  }

  // Finds shares of at most `excess` times the even ones. Returns whether they reach the bound.
  bool find_shares(double excess) {
    for (bool has_more = true; has_more;) {
      if (!minimize(bound_ * (1 + kNear)).ok()) return false;
      has_more = add_overloaded();
      has_more |= add_negative();
      has_more |= add_excessive(excess);
    }
    remove_rounding();
    return slowest(shares_) <= bound_ * (1 + kTooFar);
  }

  const LinkLoads& loads_;
  const std::vector<double> even_;
  std::vector<OwnLimit> own_;
  const double count_;                    // of members
  double slopes_ = 0;                     // Σ of own_
  double unit_ = 0;                       // T_0 in seconds per byte
  std::vector<double> seconds_per_byte_;  // by channel: two for each of loads_.links(); in units of T_0

  LinearProgram program_;
  std::vector<ProgramRow> rows_;
  std::vector<bool> has_row_;  // by channel

  double bound_ = 0;
  double time_ = 0;  // of the last solution
  std::vector<double> shares_;
};

}  // namespace

absl::StatusOr<RoutedBound> bound_on_routes(const LinkLoads& loads, const Fleet& fleet) {
  return RoutedProgram(loads, fleet).solve();
}

}  // namespace gleaner::plan
