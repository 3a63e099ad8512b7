#include "common/base/secret_file.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace gleaner {

absl::StatusOr<std::string> read_secret_file(const std::string& path) {
  GLN_ASSIGN_OR_RETURN(std::string text, read_file(path, "the token file"));
  absl::StripAsciiWhitespace(&text);
  if (text.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the token file '", path, "' is empty; it should hold the job's token"));
  }
  return text;
}

}  // namespace gleaner
