#include "cli/program.h"

#include "cli/self/own_command.h"

#include <fcntl.h>
#include <unistd.h>

#include <optional>

namespace gleaner::cli {
namespace {

// Occupies each standard stream that the caller has closed, such that reading or writing it still fails. Otherwise the
// next opened file would get its descriptor and so become a standard stream.
void keep_closed_streams_closed() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) >= 0) continue;
    const int reserved = ::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    if (reserved >= 0 && reserved != stream) ::close(reserved);
  }
}

}  // namespace

int run_program(int argc, char** argv, const std::function<void(flags::Program&, Context&)>& declare) {
  keep_closed_streams_closed();
  Context context{.arguments = {argv, argv + argc}};
  flags::Program program(own_name(), "Gleaner: spare machines' CPUs and NICs make distributed training faster",
                         GLEANER_VERSION);
  program.require_command();
  declare(program, context);
  if (const std::optional<int> status = program.parse(argc, argv)) return *status;
  const absl::Status status = context.run();
  return status.ok() ? context.exit_status : program.report(status);
}

}  // namespace gleaner::cli
