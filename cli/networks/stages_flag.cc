#include "cli/networks/stages_flag.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace gleaner::cli {

absl::StatusOr<std::vector<uint32_t>> parse_stages(const std::string& text) {
  std::vector<uint32_t> stages;
  if (text.empty()) return stages;
  for (const absl::string_view word : absl::StrSplit(text, ',')) {
    uint32_t stage = 0;
    if (!absl::SimpleAtoi(word, &stage) || stage == 0) {
      return absl::InvalidArgumentError(absl::StrCat("--stages: '", word,
                                                     "' is no number of ranks; give whole numbers "
                                                     "above 0 with commas between them, for example 3,2,2"));
    }
    stages.push_back(stage);
  }
  return stages;
}

}  // namespace gleaner::cli
