#include "comm-lib/runtime/rank_stages.h"

#include <utility>

#include "comm-lib/device/stage/device_stage.h"
#include "comm-lib/local/stage/local_stage.h"
#include "common/base/status_macros.h"

namespace gleaner::runtime {
namespace {

local::Options local_options(const Config& config) {
  local::Options options;
  options.job = wire::job_number(config.job);
  options.worker = config.worker;
  options.local_rank = config.local_rank;
  options.local_size = config.local_size;
  options.gpu_bytes = config.gpu_memory_bytes;
  options.timeout = config.open_timeout;
  return options;
}

network::NetworkOptions network_options(const Config& config) {
  return {config.job,        config.address,     config.advertise, config.window_bytes, config.summer_memory_bytes,
          config.transports, config.plan_timeout};
}

}  // namespace

absl::StatusOr<RankStages> make_stages(const Env& env, const Config& config, const kernels::Kernels* kernels,
                                       trace::Recorder* recorder, network::NetworkListener* listener) {
  RankStages stages;
  if (config.local_size > 1) {
    stages.list.push_back(std::make_unique<local::LocalStage>(env, local_options(config), kernels, recorder));
  } else {
    stages.list.push_back(std::make_unique<device::DeviceStage>(
        env, device::StageOptions{.worker = config.worker, .window_bytes = config.window_bytes}, recorder));
  }
  if (config.local_rank == 0) {
    auto encoding = std::make_unique<encoding::EncodingStage>(kernels);
    stages.encoding = encoding.get();
    stages.list.push_back(std::move(encoding));
    GLN_ASSIGN_OR_RETURN(auto network,
                         network::NetworkStage::create(env, network_options(config), kernels, recorder, listener));
    stages.network = network.get();
    stages.list.push_back(std::move(network));
  }
  return stages;
}

}  // namespace gleaner::runtime
