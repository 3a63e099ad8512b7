#include "coordinator/service.h"

#include <utility>

#include "coordinator/jobs.h"

namespace gleaner::coordinator {

absl::StatusOr<std::unique_ptr<Service>> Service::start(const Env& env, ServiceOptions options) {
  return Jobs::start(env, std::move(options), "");
}

}  // namespace gleaner::coordinator
