#include "cli/networks/line_plot.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"

namespace gleaner::cli {
namespace {

constexpr double kLeft = 70, kTop = 40, kWidth = 440, kHeight = 320;  // of the grid, in pixels
constexpr double kRight = 210, kBottom = 55;                          // the space beside it
constexpr std::array<absl::string_view, 8> kColours = {"#1f77b4", "#d62728", "#2ca02c", "#9467bd",
                                                       "#ff7f0e", "#17becf", "#8c564b", "#7f7f7f"};

std::string escape(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}});
}

// Maps values to pixels along one axis, logarithmically.
struct Axis {
  double low = 1, high = 10;  // values at `begin` and `end`
  double begin = 0, end = 1;  // pixels
  double at(double value) const {
    return begin + (end - begin) * (std::log(value) - std::log(low)) / (std::log(high) - std::log(low));
  }
};

// Returns an axis from `low` to `high`, which are widened if they are one value.
Axis axis(double low, double high, double begin, double end) {
  if (high <= low) {
    low /= 2;
    high *= 2;
  }
  return {low, high, begin, end};
}

void append_text(std::string& svg, double x, double y, absl::string_view anchor, absl::string_view text) {
  absl::StrAppendFormat(&svg, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", x, y, anchor, escape(text));
}

void append_grid(std::string& svg, const LinePlot& plot, const Axis& across, const Axis& up) {
  absl::StrAppend(&svg, "<g stroke=\"#ddd\">\n");
  for (const double x : plot.x) {
    absl::StrAppendFormat(&svg, "<path d=\"M%.1f %.1fV%.1f\"/>\n", across.at(x), up.begin, up.end);
  }
  for (double y = up.low; y < up.high * 1.001; y *= 10) {
    absl::StrAppendFormat(&svg, "<path d=\"M%.1f %.1fH%.1f\"/>\n", across.begin, up.at(y), across.end);
  }
  absl::StrAppend(&svg, "</g>\n");
  for (const double x : plot.x) append_text(svg, across.at(x), up.begin + 18, "middle", absl::StrFormat("%g", x));
  for (double y = up.low; y < up.high * 1.001; y *= 10) {
    append_text(svg, across.begin - 6, up.at(y) + 4, "end", absl::StrFormat("%g", y));
  }
}

}  // namespace

std::string to_svg(const LinePlot& plot) {
  double low = INFINITY, high = 0;
  for (const PlotLine& line : plot.lines) {
    for (const double y : line.y) {
      low = std::min(low, y);
      high = std::max(high, y);
    }
  }
  const Axis across = axis(plot.x.front(), plot.x.back(), kLeft, kLeft + kWidth);
  const Axis up =
      axis(std::pow(10, std::floor(std::log10(low))), std::pow(10, std::ceil(std::log10(high))), kTop + kHeight, kTop);
  std::string svg = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" font-family=\"sans-serif\" "
      "font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
      kLeft + kWidth + kRight, kTop + kHeight + kBottom);
  append_text(svg, kLeft, kTop - 16, "start", plot.title);
  append_grid(svg, plot, across, up);
  append_text(svg, kLeft + kWidth / 2, kTop + kHeight + 42, "middle", plot.x_label);
  append_text(svg, 8, kTop - 16, "start", plot.y_label);
  for (size_t i = 0; i < plot.lines.size(); ++i) {
    const PlotLine& line = plot.lines[i];
    const absl::string_view colour = kColours[i % kColours.size()];
    std::string points;
    for (size_t p = 0; p < plot.x.size(); ++p) {
      absl::StrAppendFormat(&points, "%.1f,%.1f ", across.at(plot.x[p]), up.at(line.y[p]));
    }
    absl::StrAppendFormat(&svg, "<polyline points=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\"/>\n", points,
                          colour);
    const double y = kTop + 12 + 18 * static_cast<double>(i);
    absl::StrAppendFormat(&svg, "<path d=\"M%.1f %.1fh18\" stroke=\"%s\" stroke-width=\"2\"/>\n", kLeft + kWidth + 14,
                          y - 4, colour);
    append_text(svg, kLeft + kWidth + 38, y, "start", line.label);
  }
  return svg + "</svg>\n";
}

}  // namespace gleaner::cli
