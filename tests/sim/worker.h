// A simulated worker: a real session, and a training script that starts push_pulls in an order and at a pace of its own
// and checks every sum.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "comm-lib/session/session.h"
#include "tests/sim/world.h"

namespace gleaner::sim {

class Worker {
 public:
  Worker(uint32_t index, World* world);

  void apply(std::shared_ptr<const plan::Plan> plan);
  void connected(uint32_t owner);
  void disconnected(uint32_t owner);
  void deliver(uint32_t owner, const wire::Header& header, Buffer payload);
  void tick();

  bool finished() const { return left_ == 0 && session_.idle(); }
  const session::Session& session() const { return session_; }

 private:
  struct Tensor {
    uint64_t step = 0;    // the next, or the one in flight
    bool wanted = false;  // by the program, as soon as the plan has it
    std::vector<std::byte> input, output;
    MutableBytes result;  // one of the two
  };

  void begin_round();
  void want(uint32_t tensor);
  void start(uint32_t tensor);
  void finish(const session::Done& done);
  void carry_out();
  Nanoseconds pause() { return world_->dice.between(0, world_->scenario.paces[index_]); }

  const uint32_t index_;
  World* const world_;
  session::Session session_;
  session::Actions actions_;
  std::vector<Tensor> tensors_;
  size_t known_ = 0;       // tensors in the plan applied here
  uint32_t round_ = 0;     // with barriers
  uint32_t in_round_ = 0;  // push_pulls of this round that are not done
  uint64_t left_ = 0;      // push_pulls that are not done
};

}  // namespace gleaner::sim
