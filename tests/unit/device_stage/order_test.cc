// Tests in which order pieces go through the stage, and how much memory they take.
#include "tests/unit/device_stage/rig.h"

namespace gleaner::device {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

class Order : public StageOnGpu {
 protected:
  // Starts the push_pull of a tensor of `bytes` bytes in place.
  Pushed& start(Rank& rank, uint32_t tensor, size_t bytes) {
    memory.push_back(make_tensor(producer, contribution(bytes, tensor)));
    return rank.start(tensor, memory.back(), memory.back(), producer);
  }
  std::vector<CUdeviceptr> memory;
};

TEST_F(Order, UrgentTensorOvertakesAllButFourMebibytes) {
  Rank& rank = make_rank({tensor_of(12 * kMib, 5), tensor_of(kMib, 1), tensor_of(kMib, 0), tensor_of(kMib, 5)});
  start(rank, 3, kMib);
  ASSERT_TRUE(run({&rank}, [&] { return rank.done().size() == 1; }));
  double_.hold(to_host(), 1);
  start(rank, 0, 12 * kMib);
  ASSERT_TRUE(run({&rank}, [&] { return rank.stage().queued_to_host() == 4 * kMib; }));
  start(rank, 1, kMib);
  start(rank, 2, kMib);
  ASSERT_TRUE(run({&rank}, [&] { return rank.stage().waiting() == 3; }));
  double_.hold(to_host(), 0);
  ASSERT_TRUE(run({&rank}, [&] { return rank.done().size() == 4; }));
  std::vector<uint32_t> expected = {3, 0, 0, 0, 0, 2, 1};
  expected.resize(expected.size() + 8, 0);
  EXPECT_THAT(rank.sums().order, ElementsAreArray(expected));
}

TEST_F(Order, EqualPrioritiesGoByTensor) {
  Rank& rank = make_rank({tensor_of(kMib), tensor_of(kMib), tensor_of(4 * kMib)});
  start(rank, 0, kMib);
  ASSERT_TRUE(run({&rank}, [&] { return rank.done().size() == 1; }));  // the GPU is open
  double_.hold(to_host(), 1);
  start(rank, 2, 4 * kMib);
  ASSERT_TRUE(run({&rank}, [&] { return rank.stage().queued_to_host() == 4 * kMib; }));
  for (const uint32_t tensor : {1, 0}) start(rank, tensor, kMib);
  ASSERT_TRUE(run({&rank}, [&] { return rank.stage().waiting() == 2; }));
  double_.hold(to_host(), 0);
  ASSERT_TRUE(run({&rank}, [&] { return rank.done().size() == 4; }));
  EXPECT_THAT(rank.sums().order, ElementsAre(0, 2, 2, 2, 2, 0, 1));
}

// The host queues a whole backward pass ahead, and the most urgent gradients come last.
TEST_F(Order, TensorThatIsNotReadyHoldsUpNoOther) {
  Rank& rank = make_rank({tensor_of(12 * kMib, 5), tensor_of(kMib, 0)});
  start(rank, 0, 12 * kMib);
  double_.hold(consumer, 1);
  memory.push_back(make_tensor(consumer, contribution(kMib, 1)));
  rank.start(1, memory.back(), memory.back(), consumer);
  ASSERT_TRUE(run({&rank}, [&] { return rank.done().size() == 1; }));
  double_.hold(consumer, 0);
  ASSERT_TRUE(run({&rank}, [&] { return rank.done().size() == 2; }));
}

TEST_F(Order, PiecesInFlightFitTheRing) {
  const size_t bytes = 24 * kMib;
  Rank& rank = make_rank({tensor_of(bytes)});
  rank.sums().decide = [](const auto&) { return std::nullopt; };
  start(rank, 0, bytes);
  const size_t slots = watched().pinned.front() / kPiece;
  ASSERT_LT(slots * kPiece, bytes) << "the ring is too large for this test";
  ASSERT_TRUE(run({&rank}, [&] { return rank.sums().kept.size() == slots; }));
  rank.sums().decide = nullptr;
  ASSERT_TRUE(run({&rank}, [&] { return rank.done().size() == 1; }));
  EXPECT_THAT(watched().pinned, ::testing::SizeIs(1));
}

// Each rank fills its ring with the tensor that the other rank starts later. A piece is summed once both ranks have
// passed it on, so no slot comes back before the first pieces of the other tensor get slots, too.
TEST_F(Order, RanksThatStartTensorsInOppositeOrderDoNotStall) {
  const size_t bytes = 24 * kMib;
  const std::vector<testing::TensorSpec> tensors = {tensor_of(bytes), tensor_of(bytes)};
  const std::vector<Rank*> both = {&make_rank(tensors), &make_rank(tensors)};
  for (size_t i = 0; i < 2; ++i) {
    Sums& other = both[1 - i]->sums();
    both[i]->sums().decide = [&other](const pipeline::PieceRequest& piece) -> std::optional<absl::Status> {
      if (!other.has(piece.tensor, piece.first)) return std::nullopt;
      return absl::OkStatus();
    };
  }
  std::vector<Pushed*> pushed;
  for (uint32_t i = 0; i < 2; ++i) pushed.push_back(&start(*both[i], i, bytes));
  const size_t slots = watched().pinned.front() / kPiece;
  ASSERT_LT(slots * kPiece, bytes) << "the ring is too large for this test";
  const auto fills_ring = [&](const Rank* rank) { return const_cast<Rank*>(rank)->sums().kept.size() == slots; };
  ASSERT_TRUE(run(both, [&] { return std::ranges::all_of(both, fills_ring); }));
  for (uint32_t i = 0; i < 2; ++i) pushed.push_back(&start(*both[i], 1 - i, bytes));
  ASSERT_TRUE(run(both, [&] { return both[0]->done().size() + both[1]->done().size() == 4; }));
  const uint32_t tensor[] = {0, 1, 1, 0};
  for (uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(pushed[i]->outcome, absl::OkStatus());
    EXPECT_TRUE(result_of(*both[i % 2], *pushed[i], memory[i], bytes) == sum_of(contribution(bytes, tensor[i])));
  }
  EXPECT_LE(watched().pinned.size(), 2 + 4) << "at most one piece of a tensor is beside the ring";
}

}  // namespace
}  // namespace gleaner::device
