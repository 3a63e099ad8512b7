#include "common/transport/all/settings.h"

#include <vector>

#include "common/transport/tcp/transport.h"

namespace gleaner::transport {

absl::StatusOr<std::unique_ptr<any::Transport>> make_transport(const Env& env, const Settings& settings,
                                                               Handler* handler, const wire::JobSecrets* jobs) {
  std::vector<any::Option> options;
  options.push_back({Kind::kTcp,
                     [env, jobs](Handler* own) -> absl::StatusOr<std::unique_ptr<Transport>> {
                       return tcp::Transport::create(env, {}, own, jobs);
                     },
                     "", ""});
  return any::Transport::create(env, options, settings.preferences, handler);
}

}  // namespace gleaner::transport
