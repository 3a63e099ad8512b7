// EncodingStage is the stage of a worker that compresses tensors (plan::Tensor::memory), just above the network. Pieces
// of other tensors pass it unchanged.
//
//   start(piece) ─▶ waiting, by priority ─▶ memory of ranks, encoded ─▶ next().start(part) ─▶ network
//   finish(piece) ◀──── last part done ◀─── memory of ranks ◀── decoded ◀── on_done(part) ◀── result
//
// The stage cuts a piece into parts (pipeline/pieces.h), and encodes one part in each call of advance(). So the first
// parts are sent while later ones are encoded. A part's contribution is converted to the tensor's type with
// one rounding to nearest even, and its result is converted back, which is exact. The bits are those of
// kernels::Kernels::sum() with one source.
//
// A tensor's contributions and results share memory of the size that travels. The stage allocates it with the tensor's
// first piece and keeps it, so transports register it once. Once warm, a part costs one allocation: the block of the
// buffer that borrows its memory, as in the stages above.
//
// Source: GradientFlow §2.5 sends fp16 gradients, which NCCL adds in fp16. Sums in fp32 with one rounding are ours.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "comm-lib/pipeline/pieces.h"
#include "comm-lib/pipeline/registered_memory.h"
#include "comm-lib/pipeline/stage.h"
#include "common/base/slots.h"
#include "common/kernels/kernels.h"

namespace gleaner::encoding {

// The elements that a rank has encoded so far, in all tensors.
struct Counts {
  uint64_t elements = 0;
  kernels::Losses losses;
};

class EncodingStage : public pipeline::Stage {
 public:
  // `kernels` must outlive the stage.
  explicit EncodingStage(const kernels::Kernels* kernels) : kernels_(*kernels) {}

  // pipeline::Stage. A piece of a compressed tensor must consist of whole parts. Other threads may start pieces.
  void start(pipeline::PieceRequest request) override;
  void on_done(uint64_t id, const absl::Status& status) override;
  absl::Status on_event(const pipeline::Event& event) override;
  void advance() override { encode_next(); }
  void fail(const absl::Status& status) override;
  bool has_work() const override { return !waiting_.empty(); }
  bool idle() const override { return pieces_.in_use() == 0; }
  bool starts_on_any_thread() const override { return true; }

  const Counts& counts() const { return counts_; }

 private:
  // A piece in flight.
  struct Piece {
    pipeline::PieceRequest request;
    uint64_t offset = 0;   // of its memory in the ranks' memory of the tensor, in bytes
    uint32_t next = 0;     // the first part that is not encoded
    uint32_t end = 0;      // the part after its last
    uint32_t missing = 0;  // number of parts without a result
    absl::Status status;   // the first error
  };

  absl::Status begin(pipeline::PieceRequest& request);
  absl::Status allocate(uint32_t tensor);
  void wait_for_turn(uint32_t piece);
  void encode_next();
  void encode(uint32_t part);
  void decode(uint32_t part);

  const plan::Tensor& tensor_of(uint32_t part) const { return plan()->tensors[parts_[part].tensor]; }
  size_t elements_of(uint32_t part) const { return parts_[part].bytes / size_of(tensor_of(part).memory->type); }
  // Returns the memory of the part's contribution and result, as they travel.
  MutableBytes travelling(uint32_t part) const;

  const kernels::Kernels& kernels_;
  pipeline::Pieces parts_;
  Slots<Piece> pieces_;
  std::vector<uint32_t> piece_of_;                        // by part: index in pieces_ of the latest piece
  std::vector<uint32_t> waiting_;                         // pieces with parts that are not encoded, most urgent first
  std::vector<std::unique_ptr<std::byte[]>> travelling_;  // by tensor; null: it had no piece, or is not compressed
  pipeline::RegisteredMemory memory_;                     // that of travelling_
  Counts counts_;
};

}  // namespace gleaner::encoding
