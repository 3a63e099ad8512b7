// LinearProgram minimizes c·x subject to A x <= b and x >= 0, where c >= 0, by the dual simplex method on a dense
// dictionary (Lemke, 1954; Chvátal, "Linear Programming", chapter 10). Rows may be added to a program that is solved,
// and the method goes on from the old solution. So a caller with many rows adds only those that the last solution
// breaks. A pivot takes (rows + 1)·(variables + 1) operations. Pure.
//
// The figures have the rounding errors of all pivots. prices() let the caller check them by the program's own numbers:
// for y >= 0 with c + yA >= 0, no solution costs less than -y·b.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/status/status.h"

namespace gleaner::plan {

class LinearProgram {
 public:
  // `costs` is c, one number >= 0 for each variable. Numbers of the program should be around 1.
  explicit LinearProgram(std::vector<double> costs);

  // Adds the row `coefficients`·x <= limit.
  void add_row(const std::vector<double>& coefficients, double limit);

  // Finds the cheapest solution. NotFound: no x that keeps all rows costs `most` or less. Internal: rounding errors
  // keep the method from an end.
  absl::Status minimize(double most = std::numeric_limits<double>::infinity());

  // The figures that the last minimize() has found.
  double value() const { return costs_.back(); }
  std::vector<double> solution() const;
  std::vector<double> prices() const;  // y, by row

 private:
  using Row = std::vector<double>;  // by column; the last element is the constant

  // Returns the row or column of the next pivot, and kNone if there is none.
  size_t broken_row() const;
  size_t entering_column(const Row& row) const;
  void pivot(size_t row, size_t column);

  static constexpr size_t kNone = SIZE_MAX;

  size_t variables_;
  // The dictionary: each basic variable is its row's constant minus the row's coefficients times the variables of the
  // columns. The cost is costs_.back() plus costs_ times these variables. Variables are numbered: first those of the
  // program, then the slack of each row.
  std::vector<Row> rows_;
  Row costs_;
  std::vector<size_t> basic_;   // by row: its variable
  std::vector<size_t> column_;  // by column: its variable
  bool by_index_ = false;       // choose the variables with the least numbers (Bland's rule), which ends cycles
};

}  // namespace gleaner::plan
