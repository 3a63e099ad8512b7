#include "cli/self/own_command.h"

#include <errno.h>  // program_invocation_name

#include "absl/strings/str_cat.h"

namespace gleaner::cli {

std::string program_name(absl::string_view called_as) {
  // kubectl runs a plugin under the name of its file.
  return called_as.substr(called_as.rfind('/') + 1) == "kubectl-gleaner" ? "kubectl gleaner" : "gleaner";
}

std::string own_name() { return program_name(program_invocation_name); }

std::string own_command(absl::string_view command) { return absl::StrCat(own_name(), " ", command); }

}  // namespace gleaner::cli
