// The values that an Exchange (exchange.h) takes and returns, and the checks of a piece against the plan.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "common/base/buffer.h"
#include "common/plan/plan.h"
#include "common/wire/frame.h"

namespace gleaner::exchange {

// The push_pull of a *piece*: consecutive partitions of a tensor. With one local rank a request for a tensor
// (comm-lib/runtime/request.h) is one piece; otherwise the local ranks sum it in several pieces (pipeline/pieces.h),
// and each has a PieceRequest of its own.
struct PieceRequest {
  uint64_t id = 0;      // chosen by the caller, returned in Done
  uint32_t tensor = 0;  // index in the plan
  ReduceOp op = ReduceOp::kSum;
  // The partitions' contributions, in the type that Plan::encoding() says; usually borrowed, and unchanged until Done.
  Buffer input;
  // The partitions' results, in the tensor's type. May be the same memory as the input if both have the same size.
  MutableBytes output;
  uint32_t first = 0;           // index of the first partition within the tensor
  uint32_t count = UINT32_MAX;  // at most this many partitions
  // Index in Plan::schedules of the schedule that sums the piece; none: owners sum it. plan::Tensor::schedule may name
  // another one, for later push_pulls.
  std::optional<uint32_t> schedule;
};

// A frame for one member.
struct Send {
  uint32_t member = 0;
  wire::Header header;  // Connection::send() fills in its checksums
  Buffer payload;
};

struct Done {
  uint64_t id = 0;
  absl::Status status;  // OK: output holds the sum
};

// Actions for the caller. The exchange appends to it. The caller carries it out, clears it and passes it again.
struct Actions {
  std::vector<Send> sends;
  std::vector<Done> done;
  // True once on_frame() has taken an awaited part of a sum. The caller sets it to false again.
  bool has_progressed = false;
  // Not OK if another member will never accept a frame of this worker (kRefuse), for example because it asks for
  // another operation. The status is for the users of the job.
  // The caller then ends the exchange with fail().
  absl::Status refused;
};

// Returns the number of partitions of a piece that check_piece() has accepted.
uint32_t partitions_of(const plan::Plan& plan, const PieceRequest& piece);

// Checks that the tensor and the partitions exist, that the sizes match, that the tensor has this op, and that the
// output does not overlap the input in part. Input and output may be the same memory only if they have the same size.
absl::Status check_piece(const plan::Plan& plan, const PieceRequest& piece);
// Checks the same of a piece whose input and output are in the memory of ranks, also if its tensor is compressed
// (plan::Tensor::memory).
absl::Status check_piece_in_memory(const plan::Plan& plan, const PieceRequest& piece);

}  // namespace gleaner::exchange
