// EncodingStage is the stage of a worker that compresses tensors (plan::Tensor::memory), just above the network. Pieces
// of other tensors pass it unchanged.
//
//   start(piece) ─▶ waiting, by priority ─▶ memory of ranks, encoded ─▶ next().start(part) ─▶ network
//   finish(piece) ◀──── last part done ◀─── memory of ranks ◀── decoded ◀── on_done(part) ◀── result
//
// The stage cuts a piece into parts (pipeline/pieces.h), and encodes one part in each call of advance(). So the first
// parts are sent while later ones are encoded. For 16-bit types a part's contribution is rounded once, to nearest even,
// and its result is converted back, which is exact. The bits are those of kernels::Kernels::sum() with one source.
//
// For blocks the stage keeps a *residual* of each value, if the tensor says so: what contributions lack so far. It is
// added to the next contribution (error feedback). What a result of top-k lacks is not lost either: each worker
// puts back into its residual the values whose places are not in the result.
//
// Memory of the size that travels has a tensor's contributions and results, which share it if they have the same type.
// The stage allocates it with the tensor's first piece and keeps it, so transports register it once. Once warm, a part
// costs one allocation: the block of the buffer that borrows its memory, as in the stages above.
//
// Sources: GradientFlow §2.5 sends fp16 gradients, which NCCL adds in fp16. Sums in fp32 with one rounding are ours.
// Error feedback: Karimireddy et al. (2019), eq. 3. Residuals after top-k of a sum: Shi et al., "gTop-k" (2019),
// algorithm 4. Momentum before the compression: BytePS's Nesterov momentum.
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
  kernels::Losses losses;  // in 16-bit types
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
  void forget_overflows(uint32_t part, const std::byte* sums);

  const plan::Tensor& tensor_of(uint32_t part) const { return plan()->tensors[parts_[part].tensor]; }
  // Where the values of a part lie in its tensor.
  struct Range {
    size_t first = 0;
    size_t count = 0;
  };
  Range values_of_part(uint32_t part) const;
  Range elements_of(uint32_t part) const;
  uint32_t key_of(uint32_t part) const;
  // Returns the memory of the part's contribution, or result, as it travels.
  MutableBytes contribution(uint32_t part) const;
  MutableBytes result(uint32_t part) const;

  // A compressed tensor. A rank keeps it from the tensor's first piece on.
  struct Compressed {
    std::unique_ptr<std::byte[]> memory;  // contributions, then results if these have memory of their own
    std::byte* results = nullptr;
    std::unique_ptr<float[]> residual;  // by value; null: none
    std::unique_ptr<float[]> momentum;  // by value; null: none
    uint64_t name = 0;                  // hash of the tensor's name: tensors have independent random numbers
  };
  const Compressed& compressed_of(uint32_t part) const { return compressed_[parts_[part].tensor]; }

  const kernels::Kernels& kernels_;
  uint32_t worker_ = 0;  // number of this worker in the job: workers round at random independently
  pipeline::Pieces parts_;
  Slots<Piece> pieces_;
  std::vector<uint32_t> piece_of_;      // by part: index in pieces_ of the latest piece
  std::vector<uint64_t> encoded_;       // by part: how often it was encoded, which is the same on all ranks
  std::vector<uint32_t> waiting_;       // pieces with parts that are not encoded, most urgent first
  std::vector<Compressed> compressed_;  // by tensor
  pipeline::RegisteredMemory memory_;   // that of compressed_
  Counts counts_;
};

}  // namespace gleaner::encoding
