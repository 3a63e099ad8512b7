// Tests of the way of a request: into the pipeline, and out of it with an outcome, a mark and a figure.
#include "comm-lib/runtime/request_flow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <span>
#include <utility>

#include "tests/manual_clock.h"

namespace gleaner::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

// Keeps the pieces that it gets.
class HoldingStage : public pipeline::Stage {
 public:
  explicit HoldingStage(std::vector<pipeline::PieceRequest>* pieces) : pieces_(*pieces) {}
  void start(pipeline::PieceRequest piece) override { pieces_.push_back(std::move(piece)); }

 private:
  std::vector<pipeline::PieceRequest>& pieces_;
};

class RequestFlowTest : public testing::Test, public pipeline::Listener {
 protected:
  RequestFlowTest() {
    std::vector<std::unique_ptr<pipeline::Stage>> stages;
    stages.push_back(std::make_unique<HoldingStage>(&pieces_));
    pipeline_ = *pipeline::Pipeline::create(std::move(stages), this);
    flow_.set_pipeline(pipeline_.get());
    state_.set_connected("tcp");
    tensor_ = *declarations_.declare({"gradient", 2, DataType::kFloat32});
  }
  // Begins a request of the tensor, which has been marked as in flight, as Rank does.
  void begin(uint64_t handle) {
    DeclaredRequest request;
    request.request.handle = handle;
    request.request.input = request.request.output = std::as_writable_bytes(std::span(values_));
    request.declaration = tensor_;
    request.tensor = *declarations_.begin(tensor_);
    flow_.begin(std::move(request));
  }
  void plan_the_tensor() {
    plan::Plan plan;
    plan.tensors.push_back({"gradient", 2, DataType::kFloat32});
    flow_.on_plan(plan);
  }
  bool is_marked() {
    const bool marked = !declarations_.begin(tensor_).ok();
    if (!marked) declarations_.end(tensor_);
    return marked;
  }
  std::vector<std::pair<uint64_t, bool>> outcomes() {
    std::vector<Outcome> taken;
    flow_.take_outcomes(taken);
    std::vector<std::pair<uint64_t, bool>> result;
    for (const Outcome& outcome : taken) result.emplace_back(outcome.handle, outcome.status.ok());
    return result;
  }
  void on_done(uint64_t handle, const absl::Status& status) override { flow_.on_done(handle, status); }
  void on_failed(const absl::Status&) override {}

  ManualClock clock_;
  RankState state_{0};
  Declarations declarations_;
  Statistics statistics_;
  trace::Recorder recorder_{&clock_};
  std::array<float, 2> values_{};
  uint32_t tensor_ = 0;
  std::vector<pipeline::PieceRequest> pieces_;
  std::unique_ptr<pipeline::Pipeline> pipeline_;
  RequestFlow flow_{&clock_, &state_, &declarations_, &statistics_, &recorder_};
};

TEST_F(RequestFlowTest, StartsARequestOnceAPlanHasItsTensor) {
  begin(1);
  EXPECT_THAT(pieces_, IsEmpty());
  plan_the_tensor();
  ASSERT_EQ(pieces_.size(), 1u);
  EXPECT_EQ(pieces_[0].id, 1u);
  EXPECT_EQ(pieces_[0].input.size(), 8u);
  EXPECT_EQ(flow_.started("gradient"), 1u);
  EXPECT_TRUE(is_marked());
  EXPECT_TRUE(statistics_.busy());
  on_done(1, absl::OkStatus());
  EXPECT_THAT(outcomes(), ElementsAre(Pair(1u, true)));
  EXPECT_FALSE(is_marked()) << "the program may begin the next request";
  EXPECT_FALSE(statistics_.busy());
  EXPECT_EQ(statistics_.report(clock_.since_start(), true, nullptr).bytes, 8u);
  on_done(1, absl::OkStatus());
  EXPECT_THAT(outcomes(), IsEmpty()) << "the request has ended before";
}

TEST_F(RequestFlowTest, BorrowsRegisteredMemory) {
  plan_the_tensor();
  begin(1);
  EXPECT_FALSE(pieces_[0].input.is_lasting());
  on_done(1, absl::OkStatus());
  pieces_.clear();
  ASSERT_EQ(pipeline_->memory().add(std::as_writable_bytes(std::span(values_))), absl::OkStatus());
  begin(2);
  EXPECT_TRUE(pieces_[0].input.is_lasting());
}

TEST_F(RequestFlowTest, AFailureEndsEveryRequest) {
  begin(1);
  const absl::Status failure = absl::UnavailableError("worker/1 is lost");
  state_.fail(failure);
  flow_.end_all(failure);
  EXPECT_THAT(outcomes(), ElementsAre(Pair(1u, false)));
  EXPECT_TRUE(flow_.empty());
  begin(2);
  EXPECT_THAT(outcomes(), ElementsAre(Pair(2u, false))) << "the rank can't be used any more";
  EXPECT_FALSE(is_marked());
  EXPECT_FALSE(statistics_.busy());
  EXPECT_THAT(pieces_, IsEmpty());
}

}  // namespace
}  // namespace gleaner::runtime
