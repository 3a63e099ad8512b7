#include "common/base/secret_file.h"

#include <cerrno>
#include <fstream>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace gleaner {

absl::StatusOr<std::string> read_secret_file(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file && !file.eof()) {
    return absl::ErrnoToStatus(errno == 0 ? EIO : errno, absl::StrCat("can't read the token file '", path, "'"));
  }
  absl::StripAsciiWhitespace(&text);
  if (text.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the token file '", path, "' is empty; it should hold the job's token"));
  }
  return text;
}

}  // namespace gleaner
