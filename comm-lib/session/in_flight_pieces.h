// InFlightPieces holds the pieces in flight: their memory, and which results are in it. Belongs to one thread. Once
// warm it allocates memory only for delayed results.
//
// A piece is done when all its results have arrived and no frame refers to its input. A result is *delayed* when it
// can't be written yet: the output is the same memory as the input, and frames to an earlier owner may still refer to
// that input. complete() writes the result when those frames are gone.
//
// Partitions are named by their indexes in the plan, pieces by an index that open() returns.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "comm-lib/exchange/piece_request.h"
#include "common/base/buffer.h"
#include "common/base/slots.h"

namespace gleaner::session {

using exchange::Done;
using exchange::PieceRequest;

class InFlightPieces {
 public:
  void resize(size_t partitions) { piece_of_.resize(partitions, kNone); }

  // Adds a piece for the partitions from `begin` to before `end`, none of which may be in flight. `offset`: position
  // of the piece's memory in the tensor, in bytes. `encoding`: the tensor's.
  void open(PieceRequest piece, uint32_t begin, uint32_t end, uint64_t offset, const plan::Encoding& encoding);

  // Returns whether a partition is part of a piece in flight.
  bool is_in_flight(uint32_t partition) const { return piece_of_[partition] != kNone; }
  // The functions below require is_in_flight(partition).
  ReduceOp op(uint32_t partition) const { return pieces_[piece_of_[partition]].piece.op; }
  // Returns the input for `bytes` bytes of the tensor from `offset` on. The piece is not done while a copy of the
  // returned handle exists.
  Buffer input(uint32_t partition, uint64_t offset, uint64_t bytes) const;
  bool is_in_place(uint32_t partition) const;  // whether the output is the same memory as the input
  // Takes the partition's result, the first `bytes` of `result`. To be called once for each partition of a piece.
  void add_result(uint32_t partition, uint64_t offset, uint64_t bytes, const Buffer& result, bool is_delayed);

  // Ends the pieces that have all results and to whose input no frame refers.
  void complete(std::vector<Done>& done);
  // Ends all pieces. No piece may be opened afterwards.
  void fail(const absl::Status& status, std::vector<Done>& done);

  uint32_t in_flight() const { return pieces_.in_use(); }  // number of pieces
  uint64_t started() const { return started_; }            // number of pieces so far

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct DelayedResult {
    uint64_t offset = 0;  // in the piece's memory, in bytes
    Buffer result;
  };
  struct PieceState {
    bool active = false;
    uint32_t begin = 0;    // the first partition
    uint32_t end = 0;      // the partition after the last
    uint32_t missing = 0;  // number of partitions without a result
    uint64_t offset = 0;   // of the piece's memory in the tensor, in bytes
    plan::Encoding encoding;
    PieceRequest piece;
    std::vector<DelayedResult> delayed;
  };

  std::vector<uint32_t> piece_of_;  // by partition
  Slots<PieceState> pieces_;
  std::vector<uint32_t> awaiting_release_;  // pieces that have all results, but whose input a frame may still refer to
  uint64_t started_ = 0;
};

}  // namespace gleaner::session
