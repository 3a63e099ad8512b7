// make_stages() makes the stages of a rank's pipeline. It is the only place that decides which stages a rank has.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "comm-lib/encoding/encoding_stage.h"
#include "comm-lib/network/network_stage.h"
#include "comm-lib/pipeline/stage.h"
#include "comm-lib/runtime/config.h"

namespace gleaner::runtime {

struct RankStages {
  std::vector<std::unique_ptr<pipeline::Stage>> list;  // from the rank to the network
  // Stages of the list; null on local ranks above 0.
  encoding::EncodingStage* encoding = nullptr;
  network::NetworkStage* network = nullptr;
};

// The pointers must outlive the stages. Errors are those of a colocated summer that can't listen.
absl::StatusOr<RankStages> make_stages(const Env& env, const Config& config, const kernels::Kernels* kernels,
                                       trace::Recorder* recorder, network::NetworkListener* listener);

}  // namespace gleaner::runtime
