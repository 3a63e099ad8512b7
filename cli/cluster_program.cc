#include "cli/cluster_program.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace gleaner::cli {

absl::Status run_cluster_program(const std::vector<std::string>& arguments) {
  std::error_code unknown;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", unknown);
  const std::string program = self.parent_path() / "gleaner-cluster";
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  ::execv(program.c_str(), argv.data());
  return absl::FailedPreconditionError(absl::StrCat("expected the program ", program,
                                                    ", which reads Kubernetes clusters: ", std::strerror(errno),
                                                    errno == ENOENT ? "; `make build` makes it" : ""));
}

}  // namespace gleaner::cli
