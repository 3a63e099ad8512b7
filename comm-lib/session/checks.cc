#include "comm-lib/session/checks.h"

#include <algorithm>
#include <array>
#include <span>

#include "absl/strings/str_cat.h"

namespace gleaner::session {
namespace {

// Returns whether `a` and `b` overlap without being the same memory. Results would then overwrite contributions that
// are still to be pushed.
bool overlaps_elsewhere(ConstBytes a, ConstBytes b) {
  const bool is_same = a.data() == b.data() && a.size() == b.size();
  return !is_same && a.data() < b.data() + b.size() && b.data() < a.data() + a.size();
}

}  // namespace

std::string describe(const plan::Plan& plan, const wire::Header& header) {
  return absl::StrCat(wire::name_of(header.type), " of tensor ", plan.tensors[header.tensor].name, " partition ",
                      header.partition, " step ", header.step);
}

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
  const uint64_t input_bytes = bytes * plan.push_factor(tensor);
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

absl::Status check_peer(const plan::Plan& plan, uint64_t job, uint32_t owner, const wire::Header& header) {
  constexpr std::array kAnswers = {wire::FrameType::kResult,  wire::FrameType::kDefer,  wire::FrameType::kFetch,
                                   wire::FrameType::kRelease, wire::FrameType::kRefuse, wire::FrameType::kCommitted};
  if (std::ranges::find(kAnswers, header.type) == kAnswers.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected RESULT, DEFER, FETCH, RELEASE, REFUSE or COMMITTED from member ", owner, ", got ",
                     wire::name_of(header.type)));
  }
  if (owner >= plan.members.size() || header.sender != owner || header.job != job) {
    return absl::InvalidArgumentError(absl::StrCat("expected a frame of job ", job, " from member ", owner, ", one of ",
                                                   plan.members.size(), "; got one of job ", header.job,
                                                   " from member ", header.sender));
  }
  return absl::OkStatus();
}

absl::Status check_exists(const plan::Plan& plan, uint32_t owner, const wire::Header& header) {
  if (header.tensor >= plan.tensors.size() || header.partition >= plan.partitions_of(header.tensor).size()) {
    return absl::InvalidArgumentError(absl::StrCat(plan.member_name(owner), " names tensor ", header.tensor,
                                                   " partition ", header.partition, ", which the plan of epoch ",
                                                   plan.epoch, " does not have"));
  }
  return absl::OkStatus();
}

absl::Status check_frame(const plan::Plan& plan, uint32_t owner, const wire::Header& header, const Buffer& payload) {
  const plan::Partition& partition = plan.partitions_of(header.tensor)[header.partition];
  if (partition.owner != owner) {
    return absl::InvalidArgumentError(absl::StrCat(plan.member_name(owner), " sent ", describe(plan, header),
                                                   ", whose owner is ", plan.member_name(partition.owner)));
  }
  const uint32_t expected = header.type == wire::FrameType::kResult ? plan.answer_bytes(partition) : 0;
  if (payload.size() != expected || header.payload_bytes != expected) {
    return absl::InvalidArgumentError(absl::StrCat(plan.member_name(owner), " sent ", describe(plan, header), " with ",
                                                   payload.size(), " bytes (header: ", header.payload_bytes,
                                                   "), expected ", expected));
  }
  return absl::OkStatus();
}

}  // namespace gleaner::session
