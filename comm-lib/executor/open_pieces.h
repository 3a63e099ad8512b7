// OpenPieces holds the pieces in flight: their contributions, where their results go, and how many of their partitions
// have none yet. Once warm it allocates no memory. Belongs to one thread.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "comm-lib/exchange/piece_request.h"
#include "common/base/buffer.h"
#include "common/base/bytes.h"
#include "common/base/slots.h"

namespace gleaner::executor {

class OpenPieces {
 public:
  // Adds a piece of `partitions` partitions, at least one. `offset`: position of its output in the tensor, in bytes.
  // `encoding`: the tensor's. Returns the index of the piece.
  uint32_t open(uint64_t id, Buffer input, MutableBytes output, uint64_t offset, const plan::Encoding& encoding,
                uint32_t partitions) {
    const uint32_t index = pieces_.take();
    pieces_[index] = {id, std::move(input), output, offset, encoding, partitions};
    return index;
  }

  // Returns the contribution to the partition of `bytes` bytes at `offset` in the tensor.
  ConstBytes input(uint32_t piece, uint64_t offset, uint64_t bytes) const {
    const Piece& from = pieces_[piece];
    return from.input.bytes().subspan(from.encoding.contribution_bytes(offset - from.offset),
                                      from.encoding.contribution_bytes(bytes));
  }
  // Returns the memory for the result at `offset` in the tensor.
  std::byte* output(uint32_t piece, uint64_t offset) const {
    return pieces_[piece].output.data() + (offset - pieces_[piece].offset);
  }

  // Counts the result of one partition. The piece is done with its last.
  void finish_partition(uint32_t index, std::vector<exchange::Done>& done) {
    Piece& piece = pieces_[index];
    if (--piece.missing > 0) return;
    done.push_back({piece.id, absl::OkStatus()});
    piece = {};
    pieces_.give_back(index);
  }

  // Ends all pieces.
  void fail(const absl::Status& status, std::vector<exchange::Done>& done) {
    for (uint32_t i = 0; i < pieces_.size(); ++i) {
      if (pieces_[i].missing == 0) continue;
      done.push_back({pieces_[i].id, status});
      pieces_[i] = {};
      pieces_.give_back(i);
    }
  }

  uint32_t in_flight() const { return pieces_.in_use(); }

 private:
  struct Piece {
    uint64_t id = 0;
    Buffer input;
    MutableBytes output;
    uint64_t offset = 0;
    plan::Encoding encoding;
    uint32_t missing = 0;  // number of partitions without a result; 0: the index is free
  };
  Slots<Piece> pieces_;
};

}  // namespace gleaner::executor
