#include "cli/launcher/user_environment.h"

#include <unistd.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace gleaner::launcher {
namespace {

std::string value_of(const char* variable) {
  const char* const value = std::getenv(variable);
  return value == nullptr ? "" : value;
}

}  // namespace

UserEnvironment user_environment() {
  UserEnvironment user;
  user.master_address = value_of("MASTER_ADDR");
  user.master_port = value_of("MASTER_PORT");
  user.has_thread_count = std::getenv("OMP_NUM_THREADS") != nullptr;
  // The XDG Base Directory Specification tells programs to ignore relative paths.
  if (const std::string folder = value_of("XDG_RUNTIME_DIR"); !folder.empty() && folder.front() == '/') {
    user.runtime_folders.push_back(absl::StrCat(folder, "/gleaner"));
  }
  user.runtime_folders.push_back(absl::StrCat("/tmp/gleaner-", ::geteuid()));
  const std::string usual = absl::StrCat("/run/user/", ::geteuid(), "/gleaner");
  if (usual != user.runtime_folders.front()) user.runtime_folders.push_back(usual);
  return user;
}

}  // namespace gleaner::launcher
