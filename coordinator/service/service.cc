#include "coordinator/service/service.h"

#include <utility>

#include "coordinator/service/jobs.h"

namespace gleaner::coordinator {

absl::StatusOr<std::unique_ptr<Service>> Service::start(const Env& env, ServiceOptions options) {
  return Jobs::start(env, std::move(options), "");
}

}  // namespace gleaner::coordinator
