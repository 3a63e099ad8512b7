#include "summation-service/engine/gathering_sums.h"

#include <utility>

#include "common/base/faults.h"

namespace gleaner::engine {

GatheringSums::GatheringSums(const kernels::Kernels* kernels, BufferPool* pool, MemoryBudget* memory)
    : kernels_(kernels), pool_(pool), memory_(memory) {}

void GatheringSums::resize(uint32_t workers, size_t partitions) {
  blank_.contributions.resize(workers);
  workers_ = workers;
  sources_.reserve(workers);
  by_partition_.resize(partitions, kNone);
}

bool GatheringSums::has_contribution(uint32_t partition, uint32_t worker) const {
  return is_gathering(partition) && !gatherings_[by_partition_[partition]].contributions[worker].empty();
}

uint32_t GatheringSums::first_contributor(uint32_t partition) const {
  uint32_t worker = 0;
  while (!has_contribution(partition, worker)) ++worker;
  return worker;
}

bool GatheringSums::begin(uint32_t partition, ReduceOp op, const Shape& shape) {
  if (!memory_->has_room(shape.group, shape.memory())) return false;
  if (GLN_INJECT("engine: a push is deferred although there is memory")) return false;
  memory_->reserve(shape.group, shape.memory());
  by_partition_[partition] = gatherings_.take(blank_);
  Gathering& gathering = gatherings_[by_partition_[partition]];
  gathering.op = op;
  gathering.shape = shape;
  gathering.missing_contributions = shape.contributors;
  return true;
}

bool GatheringSums::add(uint32_t partition, uint32_t worker, Buffer contribution) {
  Gathering& gathering = gatherings_[by_partition_[partition]];
  gathering.contributions[worker] = std::move(contribution);
  return --gathering.missing_contributions == 0;
}

Buffer GatheringSums::make_sum(uint32_t partition, DataType from, DataType to, uint32_t ranks) {
  const Gathering& gathering = gatherings_[by_partition_[partition]];
  const Shape& shape = gathering.shape;
  Buffer result = pool_->take(shape.result_bytes);
  sources_.clear();
  for (const Buffer& contribution : gathering.contributions) {
    if (!contribution.empty()) sources_.push_back(contribution.bytes().data());
  }
  const uint32_t divisor = gathering.op == ReduceOp::kAverage ? ranks : 1;
  kernels_->sum(from, to, sources_, result.bytes().data(), shape.result_bytes / size_of(to), divisor);
  memory_->release(shape.group, block_size(shape.contribution_bytes) * shape.contributors);
  stop_gathering(partition);
  return result;
}

void GatheringSums::drop(uint32_t partition) {
  const Gathering& gathering = gatherings_[by_partition_[partition]];
  memory_->release(gathering.shape.group, gathering.shape.memory());
  stop_gathering(partition);
}

void GatheringSums::stop_gathering(uint32_t partition) {
  const uint32_t gathering = std::exchange(by_partition_[partition], kNone);
  for (Buffer& contribution : gatherings_[gathering].contributions) contribution = {};
  gatherings_.give_back(gathering);
}

}  // namespace gleaner::engine
