#include "cli/private_directory.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace gleaner::cli {

absl::StatusOr<PrivateDirectory> PrivateDirectory::create() {
  const char* parent = std::getenv("TMPDIR");
  std::string path = absl::StrCat(parent == nullptr || *parent == '\0' ? "/tmp" : parent, "/gleaner-XXXXXX");
  if (::mkdtemp(path.data()) == nullptr) {
    return absl::UnavailableError(absl::StrCat("can't make a directory like '", path, "': ", std::strerror(errno),
                                               "; set TMPDIR to a directory that can be written to"));
  }
  return PrivateDirectory(std::move(path));
}

void PrivateDirectory::remove() {
  std::error_code ignored;  // a directory that can't be removed is not an error
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace gleaner::cli
