#include "summation-service/engine/retained_results.h"

#include <utility>

#include "common/base/block_size.h"
#include "common/base/faults.h"

namespace gleaner::engine {

void RetainedResults::resize(uint32_t workers, size_t partitions) {
  blank_.acknowledged = WorkerSet(workers);
  by_partition_.resize(partitions, kNone);
}

bool RetainedResults::is_lacked_by(uint32_t partition, uint32_t worker) const {
  if (!has(partition)) return false;
  const Entry& entry = entries_[by_partition_[partition]];
  return !entry.result.values.empty() && !entry.acknowledged.contains(worker);
}

RetainedResults::Entry& RetainedResults::begin(uint32_t partition, uint32_t bytes) {
  by_partition_[partition] = entries_.take(blank_);
  Entry& entry = entries_[by_partition_[partition]];
  entry.bytes = bytes;
  return entry;
}

void RetainedResults::retain(uint32_t partition, ReduceOp op, const Receivers& receivers, Buffer values) {
  Entry& entry = begin(partition, static_cast<uint32_t>(values.size()));
  entry.made_by_earlier_owner = false;
  entry.group = receivers.group;
  entry.missing_acks = receivers.count;
  entry.acknowledged.clear();
  entry.result = {op, releases_->add(), std::move(values)};
}

void RetainedResults::expect(uint32_t partition, uint32_t bytes, const WorkerSet& ahead, uint32_t behind) {
  Entry& entry = begin(partition, bytes);
  entry.made_by_earlier_owner = true;
  entry.missing_acks = behind;
  entry.acknowledged = ahead;
  handed_bytes_ += block_size(bytes);
}

void RetainedResults::receive(uint32_t partition, ReduceOp op, Buffer values) {
  entries_[by_partition_[partition]].result = {op, releases_->add(), std::move(values)};
}

void RetainedResults::acknowledge(uint32_t partition, uint32_t worker) {
  if (!has(partition)) return;
  Entry& entry = entries_[by_partition_[partition]];
  if (entry.acknowledged.contains(worker)) return;
  entry.acknowledged.add(worker);
  --entry.missing_acks;
  if (entry.missing_acks == 0 || GLN_MUTATION("a result is dropped with its first acknowledgement")) drop(partition);
}

void RetainedResults::drop(uint32_t partition) {
  const uint32_t index = std::exchange(by_partition_[partition], kNone);
  Entry& entry = entries_[index];
  if (!entry.result.values.empty()) releases_->release(entry.result.number);
  if (entry.made_by_earlier_owner) {
    handed_bytes_ -= block_size(entry.bytes);
  } else {
    memory_->release(entry.group, block_size(entry.bytes));
  }
  entry.result.values = {};
  entries_.give_back(index);
}

}  // namespace gleaner::engine
