#include "common/base/text_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace gleaner {

std::string align(const std::vector<std::vector<std::string>>& rows, absl::string_view alignment) {
  std::vector<size_t> width;
  for (const auto& row : rows) {
    width.resize(std::max(width.size(), row.size()), 0);
    for (size_t column = 0; column < row.size(); ++column) width[column] = std::max(width[column], row[column].size());
  }
  std::string text;
  for (const auto& row : rows) {
    for (size_t column = 0; column < row.size(); ++column) {
      const bool is_left = alignment[std::min(column, alignment.size() - 1)] == 'l';
      const bool is_last = column + 1 == row.size();
      const std::string padding(width[column] - row[column].size(), ' ');
      if (column > 0) text += "  ";
      absl::StrAppend(&text, is_left ? "" : padding, row[column], is_left && !is_last ? padding : "");
    }
    text += '\n';
  }
  return text;
}

std::string counted(uint64_t count, absl::string_view noun, absl::string_view several) {
  if (count == 1) return absl::StrCat("1 ", noun);
  return several.empty() ? absl::StrCat(count, " ", noun, "s") : absl::StrCat(count, " ", several);
}

}  // namespace gleaner
