#include "common/plan/linear_program.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gleaner::plan {
namespace {

// Smaller numbers are rounding errors of numbers around 1.
constexpr double kRounding = 1e-10;
constexpr double kLeastPivot = 1e-8;
// Costs for each unit of a coefficient that differ by less are equal.
constexpr double kTie = 1e-12;
// Pivots at the same cost, after which a cycle is likely.
constexpr size_t kStalledPivots = 200;

// Subtracts a multiple of the row from another one, such that its coefficient in the column is that of the variable
// which leaves.
void eliminate(std::vector<double>& from, const std::vector<double>& row, size_t column) {
  const double factor = from[column];
  if (factor == 0) return;
  from[column] = 0;
  for (size_t i = 0; i < row.size(); ++i) from[i] -= factor * row[i];
}

absl::Status no_solution() { return absl::NotFoundError("the linear program has no solution, or none so cheap"); }

}  // namespace

LinearProgram::LinearProgram(std::vector<double> costs)
    : variables_(costs.size()), costs_(std::move(costs)), column_(variables_) {
  costs_.push_back(0);
  std::iota(column_.begin(), column_.end(), size_t{0});
}

void LinearProgram::add_row(const std::vector<double>& coefficients, double limit) {
  // Replaces the basic variables by their rows.
  Row row(variables_ + 1, 0);
  row.back() = limit;
  for (size_t column = 0; column < variables_; ++column) {
    if (column_[column] < variables_) row[column] = coefficients[column_[column]];
  }
  for (size_t i = 0; i < rows_.size(); ++i) {
    const double factor = basic_[i] < variables_ ? coefficients[basic_[i]] : 0;
    if (factor == 0) continue;
    for (size_t column = 0; column <= variables_; ++column) row[column] -= factor * rows_[i][column];
  }
  basic_.push_back(variables_ + rows_.size());
  rows_.push_back(std::move(row));
}

// Returns the row that is broken most in relation to its length, by which the steepest edge leads on (Forrest and
// Goldfarb, 1992): a third of the pivots, or less, that the largest number would take.
size_t LinearProgram::broken_row() const {
  size_t best = kNone;
  double steepest = 0;
  for (size_t i = 0; i < rows_.size(); ++i) {
    const double missing = rows_[i].back();
    if (missing >= -kRounding) continue;
    if (by_index_) {
      if (best == kNone || basic_[i] < basic_[best]) best = i;
      continue;
    }
    const double length = std::inner_product(rows_[i].begin(), rows_[i].end() - 1, rows_[i].begin(), 1.0);
    if (missing * missing <= steepest * length) continue;
    best = i;
    steepest = missing * missing / length;
  }
  return best;
}

size_t LinearProgram::entering_column(const Row& row) const {
  size_t best = kNone;
  double least = INFINITY;
  for (size_t column = 0; column < variables_; ++column) {
    if (row[column] >= -kLeastPivot) continue;
    const double ratio = std::max(costs_[column], 0.0) / -row[column];
    const bool ties = best != kNone && std::abs(ratio - least) <= kTie;
    // The largest pivot of equal ratios has the least rounding error.
    const bool is_better = by_index_ ? ties && column_[column] < column_[best] : ties && row[column] < row[best];
    if (ties ? !is_better : ratio >= least) continue;
    best = column;
    least = std::min(least, ratio);
  }
  return best;
}

void LinearProgram::pivot(size_t row, size_t column) {
  Row& pivoted = rows_[row];
  const double number = pivoted[column];
  for (double& each : pivoted) each /= number;
  pivoted[column] = 1 / number;
  for (size_t i = 0; i < rows_.size(); ++i) {
    if (i != row) eliminate(rows_[i], pivoted, column);
  }
  const double value = costs_.back() + costs_[column] * pivoted.back();
  eliminate(costs_, pivoted, column);
  costs_.back() = value;
  std::swap(basic_[row], column_[column]);
}

absl::Status LinearProgram::minimize(double most) {
  const size_t most_pivots = 100 * (variables_ + rows_.size()) + 10 * kStalledPivots;
  size_t stalled = 0;
  for (size_t pivots = 0; pivots < most_pivots; ++pivots) {
    if (value() > most) return no_solution();  // the cost rises from pivot to pivot
    by_index_ = stalled > kStalledPivots;
    const size_t row = broken_row();
    if (row == kNone) return absl::OkStatus();
    const size_t column = entering_column(rows_[row]);
    if (column == kNone) return no_solution();
    const double before = value();
    pivot(row, column);
    stalled = value() - before > kRounding * std::abs(before) ? 0 : stalled + 1;
  }
  return absl::InternalError(absl::StrCat("the linear program of ", variables_, " variables and ", rows_.size(),
                                          " rows has no end after ", most_pivots, " pivots, by rounding errors"));
}

std::vector<double> LinearProgram::solution() const {
  std::vector<double> values(variables_, 0);
  for (size_t i = 0; i < rows_.size(); ++i) {
    if (basic_[i] < variables_) values[basic_[i]] = std::max(rows_[i].back(), 0.0);
  }
  return values;
}

std::vector<double> LinearProgram::prices() const {
  std::vector<double> prices(rows_.size(), 0);
  for (size_t column = 0; column < variables_; ++column) {
    if (column_[column] >= variables_) prices[column_[column] - variables_] = std::max(costs_[column], 0.0);
  }
  return prices;
}

}  // namespace gleaner::plan
