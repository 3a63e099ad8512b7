#include "comm-lib/exchange/piece_request.h"

#include <algorithm>
#include <span>

#include "absl/strings/str_cat.h"

namespace gleaner::exchange {
namespace {

// Returns whether `a` and `b` overlap without being the same memory. Results would then overwrite contributions that
// are still to be pushed.
bool overlaps_elsewhere(ConstBytes a, ConstBytes b) {
  const bool is_same = a.data() == b.data() && a.size() == b.size();
  return !is_same && a.data() < b.data() + b.size() && b.data() < a.data() + a.size();
}

}  // namespace

uint32_t partitions_of(const plan::Plan& plan, const PieceRequest& piece) {
  return std::min(piece.count, static_cast<uint32_t>(plan.partitions_of(piece.tensor).size()) - piece.first);
}

absl::Status check_piece(const plan::Plan& plan, const PieceRequest& piece) {
  if (piece.tensor >= plan.tensors.size()) {
    return absl::InvalidArgumentError(absl::StrCat("tensor ", piece.tensor, " is not in the plan, which has ",
                                                   plan.tensors.size(), " tensors; declare the tensor first"));
  }
  const plan::Tensor& tensor = plan.tensors[piece.tensor];
  const std::span<const plan::Partition> partitions = plan.partitions_of(piece.tensor);
  if (piece.first > partitions.size()) {
    return absl::InvalidArgumentError(absl::StrCat("tensor ", tensor.name, " has ", partitions.size(),
                                                   " partitions; the piece begins at partition ", piece.first));
  }
  uint64_t bytes = 0;
  for (const plan::Partition& each : partitions.subspan(piece.first, partitions_of(plan, piece))) bytes += each.bytes;
  const uint64_t input_bytes = plan.encoding(tensor).contribution_bytes(bytes);
  if (piece.input.size() != input_bytes || piece.output.size() != bytes) {
    return absl::InvalidArgumentError(absl::StrCat("tensor ", tensor.name, " has ", input_bytes, " bytes of input and ",
                                                   bytes, " of output, got ", piece.input.size(), " and ",
                                                   piece.output.size()));
  }
  if (overlaps_elsewhere(piece.input.bytes(), piece.output)) {
    return absl::InvalidArgumentError(absl::StrCat("input and output of tensor ", tensor.name,
                                                   " overlap in part: they must be the same memory or not overlap"));
  }
  if (tensor.accumulates != (piece.op == ReduceOp::kAccumulate)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "tensor ", tensor.name, tensor.accumulates ? " is accumulated, and has no op " : " is not accumulated: op ",
        static_cast<int>(piece.op), "; a tensor is declared either as accumulated or not"));
  }
  if (!is_valid(piece.op) || (piece.op == ReduceOp::kAverage && tensor.type == DataType::kInt32)) {
    return absl::InvalidArgumentError(absl::StrCat("tensor ", tensor.name, " is ", name_of(tensor.type),
                                                   ", which has no op ", static_cast<int>(piece.op),
                                                   "; int32 tensors can only be summed"));
  }
  return absl::OkStatus();
}

}  // namespace gleaner::exchange
