// Summer: a simulated summer with a real engine, whose counters are checked after every frame. A colocated summer gets
// plans from its worker. A CpuSummer follows the coordinator itself.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/kernels/kernels.h"
#include "summation-service/engine/engine.h"
#include "tests/protocol_sim/follower.h"
#include "tests/protocol_sim/world.h"

namespace gleaner::sim {

class Summer {
 public:
  // `number` is the number of its process (network.h).
  Summer(uint32_t number, const kernels::Kernels* kernels, World* world);

  // Sets the summer's member index, before the first plan.
  void be(uint32_t member);
  absl::Status prepare(std::shared_ptr<const plan::Plan> plan);
  void commit(uint32_t epoch);
  void on_connected(uint32_t worker);
  void deliver(uint32_t worker, const wire::Header& header, Buffer payload);

  bool idle_without(uint32_t worker) const;
  Moment moment() const;
  // Called when one of its results has arrived at a worker.
  void on_pulled() { pulled_ = true; }
  // Adds the engine's counters to the report.
  void count() const;

 private:
  void send_all();

  const uint32_t number_;
  const kernels::Kernels* const kernels_;
  World* const world_;
  uint32_t member_ = 0;
  std::unique_ptr<engine::Engine> engine_;
  engine::Actions actions_;
  bool pulled_ = false;  // a result has arrived since the last sum was made
};

class CpuSummer final : private Follower::Events {
 public:
  CpuSummer(uint32_t number, double bits_per_second, const kernels::Kernels* kernels, World* world, Control* control);

  void begin() { follower_.begin(); }
  void deliver(uint32_t worker, const wire::Header& header, const Buffer& payload);
  void on_connected(uint32_t worker);
  void leave() { follower_.leave(); }
  void crash();
  void freeze() { process_.crash(); }
  void pause(Nanoseconds duration) { process_.pause(duration); }
  void break_stream() { follower_.break_stream(); }

  void on_pulled() { summer_.on_pulled(); }
  const std::string& address() const { return address_; }
  bool is_dead() const { return process_.is_dead(); }
  bool is_paused() const { return process_.is_paused(); }
  bool is_leaving() const { return follower_.is_leaving(); }
  bool is_gone() const { return process_.is_dead() || follower_.is_over(); }
  const Summer& summer() const { return summer_; }

 private:
  void on_welcome(uint32_t member) override { summer_.be(member); }
  absl::Status on_prepare(std::shared_ptr<const plan::Plan> plan) override { return summer_.prepare(std::move(plan)); }
  void on_commit(std::shared_ptr<const plan::Plan> plan) override { summer_.commit(plan->epoch); }
  void on_ending(const std::vector<uint32_t>& /*left*/) override {}
  void on_over(const absl::Status&) override;

  World* const world_;
  const uint32_t number_;
  const std::string address_;
  Process process_;
  Summer summer_;
  Follower follower_;
};

// Convert between the number of a process and the address at which its summer listens.
std::string address_of(uint32_t number);
uint32_t number_of(const std::string& address);

}  // namespace gleaner::sim
