// EngineRig: an engine for tests, with short functions to push, to acknowledge, and to read what the engine sends.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "common/kernels/kernels.h"
#include "summation-service/engine/engine.h"
#include "tests/unit/engine/plans.h"

namespace gleaner::testing {

inline constexpr uint64_t kJob = 7;

struct Key {
  uint32_t tensor = 0;
  uint32_t partition = 0;
  uint64_t step = 0;
};

class EngineRig {
 public:
  // The engine is that of CPU summer 0, member `spec.workers`.
  explicit EngineRig(const PlanSpec& spec, uint64_t memory_cap_bytes = 0)
      : plan(build_plan(spec)),
        self(spec.workers),
        engine({.job = kJob, .self = spec.workers, .memory_cap_bytes = memory_cap_bytes}, &kernels, &pool) {}

  absl::Status take_plan() {
    if (absl::Status status = engine.prepare(plan); !status.ok()) return status;
    return commit(plan->epoch);
  }

  // Commits a prepared plan. Clears `actions` first.
  absl::Status commit(uint32_t epoch) {
    actions.clear();
    return engine.commit(epoch, actions);
  }

  wire::Header header(wire::FrameType type, uint32_t worker, const Key& key) const {
    wire::Header header;
    header.type = type;
    header.data_type = DataType::kFloat32;
    header.job = kJob;
    header.epoch = plan->epoch;
    header.sender = worker;
    header.tensor = key.tensor;
    header.partition = key.partition;
    header.step = key.step;
    return header;
  }

  template <typename T>
  Buffer payload(const std::vector<T>& values) {
    Buffer buffer = pool.take(values.size() * sizeof(T));
    if (!values.empty()) std::memcpy(buffer.bytes().data(), values.data(), buffer.size());
    return buffer;
  }

  // Passes a frame to the engine. Clears `actions` first.
  absl::Status send(uint32_t worker, wire::Header what, Buffer bytes) {
    actions.clear();
    what.payload_bytes = static_cast<uint32_t>(bytes.size());
    return engine.on_frame(worker, what, std::move(bytes), actions);
  }
  absl::Status push(uint32_t worker, const Key& key, const std::vector<float>& values, ReduceOp op = ReduceOp::kSum) {
    wire::Header push = header(wire::FrameType::kPush, worker, key);
    push.op = op;
    return send(worker, push, payload(values));
  }
  absl::Status acknowledge(uint32_t worker, const std::vector<wire::PartitionKey>& keys) {
    return send(worker, header(wire::FrameType::kAck, worker, {}), payload(keys));
  }

  std::vector<uint32_t> receivers(wire::FrameType type) const {
    std::vector<uint32_t> workers;
    for (const engine::Send& send : actions.sends) {
      if (send.header.type == type) workers.push_back(send.worker);
    }
    return workers;
  }
  std::vector<float> values_sent(size_t index) const {
    const Buffer& sent = actions.sends.at(index).payload;
    std::vector<float> values(sent.size() / sizeof(float));
    std::memcpy(values.data(), sent.bytes().data(), sent.size());
    return values;
  }

  kernels::Kernels kernels = *kernels::Kernels::choose("");
  BufferPool pool;
  std::shared_ptr<const plan::Plan> plan;
  uint32_t self;
  engine::Actions actions;
  engine::Engine engine;
};

}  // namespace gleaner::testing
