#include "summation-service/engine/running_sum.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <span>
#include <utility>

namespace gleaner::engine {

RunningSum::RunningSum(uint32_t workers, Buffer answer)
    : answer_(std::move(answer)), counts_(workers), unanswered_(workers) {
  const size_t bytes = counts_.size() * sizeof(uint64_t);
  std::memcpy(counts_.data(), answer_.bytes().last(bytes).data(), bytes);
}

void RunningSum::add(uint32_t worker, const Buffer& contribution, DataType type, const kernels::Kernels& kernels,
                     BufferPool& pool) {
  const size_t bytes = contribution.size();
  Buffer next = pool.take(bytes + counts_.size() * sizeof(uint64_t));
  const std::byte* const both[] = {answer_.bytes().data(), contribution.bytes().data()};
  const size_t first = answer_.empty() ? 1 : 0;
  kernels.sum(type, std::span(both).subspan(first), next.bytes().data(), bytes / size_of(type), 1);
  ++counts_[worker];
  std::memcpy(next.bytes().data() + bytes, counts_.data(), counts_.size() * sizeof(uint64_t));
  answer_ = std::move(next);
  unanswered_[worker] = 1;
}

uint64_t RunningSum::least_count() const { return *std::ranges::min_element(counts_); }

uint64_t RunningSum::version() const { return std::accumulate(counts_.begin(), counts_.end(), uint64_t{0}); }

}  // namespace gleaner::engine
