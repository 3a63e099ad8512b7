// A simulated summer: a real engine, whose counters are checked after every frame.
#pragma once

#include <cstdint>
#include <memory>

#include "common/kernels/kernels.h"
#include "summation-service/engine/engine.h"
#include "tests/sim/world.h"

namespace gleaner::sim {

class Summer {
 public:
  Summer(uint32_t member, const kernels::Kernels* kernels, World* world);

  void prepare(std::shared_ptr<const plan::Plan> plan);
  void commit(uint32_t epoch);
  void deliver(uint32_t worker, const wire::Header& header, Buffer payload);

  // After everything has ended: every sum made once, nothing retained.
  void check_end() const;
  const engine::Engine& engine() const { return engine_; }

 private:
  const uint32_t member_;
  World* const world_;
  engine::Engine engine_;
  engine::Actions actions_;
};

}  // namespace gleaner::sim
