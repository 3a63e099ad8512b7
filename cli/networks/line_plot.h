// Draws lines over a logarithmic grid as SVG. Pure.
#pragma once

#include <string>
#include <vector>

namespace gleaner::cli {

struct PlotLine {
  std::string label;
  std::vector<double> y;  // one for each x; > 0
};

struct LinePlot {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<double> x;  // > 0, ascending, at least one
  std::vector<PlotLine> lines;
};

std::string to_svg(const LinePlot& plot);

}  // namespace gleaner::cli
