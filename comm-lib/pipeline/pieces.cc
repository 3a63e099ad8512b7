#include "comm-lib/pipeline/pieces.h"

namespace gleaner::pipeline {
namespace {

constexpr uint64_t kPieceBytes = 1 << 20;

}  // namespace

std::span<const Piece> Pieces::extend(const plan::Plan& plan) {
  const size_t before = pieces_.size();
  for (auto tensor = static_cast<uint32_t>(tensors()); tensor < plan.tensors.size(); ++tensor) {
    const bool accumulates = plan.tensors[tensor].accumulates;
    pieces_.push_back({.tensor = tensor, .accumulates = accumulates});
    for (const plan::Partition& partition : plan.partitions_of(tensor)) {
      if (pieces_.back().bytes >= kPieceBytes) {
        const Piece& last = pieces_.back();
        pieces_.push_back({.tensor = tensor,
                           .first = last.first + last.count,
                           .offset = last.offset + last.bytes,
                           .accumulates = accumulates});
      }
      ++pieces_.back().count;
      pieces_.back().bytes += partition.bytes;
    }
    first_.push_back(static_cast<uint32_t>(pieces_.size()));
  }
  return std::span(pieces_).subspan(before);
}

}  // namespace gleaner::pipeline
