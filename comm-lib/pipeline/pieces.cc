#include "comm-lib/pipeline/pieces.h"

namespace gleaner::pipeline {
namespace {

constexpr uint64_t kPieceBytes = 1 << 20;

}  // namespace

std::span<const Piece> Pieces::extend(const plan::Plan& plan) {
  const size_t before = pieces_.size();
  for (auto tensor = static_cast<uint32_t>(tensors()); tensor < plan.tensors.size(); ++tensor) {
    const plan::Tensor& cut = plan.tensors[tensor];
    pieces_.push_back({.tensor = tensor, .accumulates = cut.accumulates});
    for (const plan::Partition& partition : plan.partitions_of(tensor)) {
      const uint64_t begin = cut.memory_bytes(partition.offset);
      if (pieces_.back().bytes >= kPieceBytes) {
        const Piece& last = pieces_.back();
        pieces_.push_back(
            {.tensor = tensor, .first = last.first + last.count, .offset = begin, .accumulates = cut.accumulates});
      }
      ++pieces_.back().count;
      pieces_.back().bytes += cut.memory_bytes(partition.offset + partition.bytes) - begin;
    }
    first_.push_back(static_cast<uint32_t>(pieces_.size()));
  }
  return std::span(pieces_).subspan(before);
}

}  // namespace gleaner::pipeline
