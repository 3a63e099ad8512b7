#include "comm-lib/exchange/piece_request.h"

#include <algorithm>
#include <span>

#include "absl/strings/str_cat.h"

namespace gleaner::exchange {
namespace {

// The sizes that a piece should have, in bytes.
struct Sizes {
  uint64_t input = 0;
  uint64_t output = 0;
};

Sizes travelling_sizes(const plan::Plan& plan, const plan::Tensor& tensor, uint64_t begin, uint64_t end) {
  return {plan.encoding(tensor).contribution_bytes(end - begin), end - begin};
}

// Returns whether `a` and `b` overlap without being the same memory. Results would then overwrite contributions that
// are still to be pushed.
bool overlaps_elsewhere(ConstBytes a, ConstBytes b) {
  const bool is_same = a.data() == b.data() && a.size() == b.size();
  return !is_same && a.data() < b.data() + b.size() && b.data() < a.data() + a.size();
}

absl::Status check_op(const plan::Tensor& tensor, ReduceOp op) {
  if (tensor.accumulates != (op == ReduceOp::kAccumulate)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "tensor ", tensor.name, tensor.accumulates ? " is accumulated, and has no op " : " is not accumulated: op ",
        static_cast<int>(op), "; a tensor is declared either as accumulated or not"));
  }
  if (!is_valid(op) || (op == ReduceOp::kAverage && tensor.type == DataType::kInt32)) {
    return absl::InvalidArgumentError(absl::StrCat("tensor ", tensor.name, " is ", name_of(tensor.type),
                                                   ", which has no op ", static_cast<int>(op),
                                                   "; int32 tensors can only be summed"));
  }
  return absl::OkStatus();
}

// `sizes(tensor, begin, end)` returns the sizes of a piece from byte `begin` of the tensor to before byte `end`.
template <typename SizesOf>
absl::Status check(const plan::Plan& plan, const PieceRequest& piece, SizesOf sizes) {
  if (piece.tensor >= plan.tensors.size()) {
    return absl::InvalidArgumentError(absl::StrCat("tensor ", piece.tensor, " is not in the plan, which has ",
                                                   plan.tensors.size(), " tensors; declare the tensor first"));
  }
  const plan::Tensor& tensor = plan.tensors[piece.tensor];
  std::span<const plan::Partition> partitions = plan.partitions_of(piece.tensor);
  if (piece.first > partitions.size()) {
    return absl::InvalidArgumentError(absl::StrCat("tensor ", tensor.name, " has ", partitions.size(),
                                                   " partitions; the piece begins at partition ", piece.first));
  }
  partitions = partitions.subspan(piece.first, partitions_of(plan, piece));
  const uint64_t begin = partitions.empty() ? 0 : partitions.front().offset;
  const uint64_t end = partitions.empty() ? 0 : partitions.back().offset + partitions.back().bytes;
  const Sizes expected = sizes(tensor, begin, end);
  if (piece.input.size() != expected.input || piece.output.size() != expected.output) {
    return absl::InvalidArgumentError(absl::StrCat("tensor ", tensor.name, " has ", expected.input,
                                                   " bytes of input and ", expected.output, " of output, got ",
                                                   piece.input.size(), " and ", piece.output.size()));
  }
  if (overlaps_elsewhere(piece.input.bytes(), piece.output)) {
    return absl::InvalidArgumentError(absl::StrCat("input and output of tensor ", tensor.name,
                                                   " overlap in part: they must be the same memory or not overlap"));
  }
  return check_op(tensor, piece.op);
}

}  // namespace

uint32_t partitions_of(const plan::Plan& plan, const PieceRequest& piece) {
  return std::min(piece.count, static_cast<uint32_t>(plan.partitions_of(piece.tensor).size()) - piece.first);
}

absl::Status check_piece(const plan::Plan& plan, const PieceRequest& piece) {
  return check(plan, piece, [&](const plan::Tensor& tensor, uint64_t begin, uint64_t end) {
    return travelling_sizes(plan, tensor, begin, end);
  });
}

absl::Status check_piece_in_memory(const plan::Plan& plan, const PieceRequest& piece) {
  return check(plan, piece, [&](const plan::Tensor& tensor, uint64_t begin, uint64_t end) {
    if (!tensor.memory.has_value()) return travelling_sizes(plan, tensor, begin, end);
    const uint64_t bytes = tensor.memory_bytes(end) - tensor.memory_bytes(begin);
    return Sizes{bytes, bytes};
  });
}

}  // namespace gleaner::exchange
