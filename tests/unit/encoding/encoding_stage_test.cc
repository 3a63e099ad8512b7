// Tests of the stage that compresses tensors, above a stage that stands for the network.
#include "comm-lib/encoding/encoding_stage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "comm-lib/pipeline/pipeline.h"
#include "common/plan/partitioner.h"

namespace gleaner::encoding {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Keeps each piece until end().
class Network : public pipeline::Stage {
 public:
  void start(pipeline::PieceRequest piece) override { pieces.push_back(std::move(piece)); }
  void end(const pipeline::PieceRequest& piece, const absl::Status& status = absl::OkStatus()) {
    finish(piece.id, status);
  }
  std::vector<pipeline::PieceRequest> pieces;
};

struct Done final : pipeline::Listener {
  void on_done(uint64_t id, const absl::Status& status) override { outcomes[id] = status; }
  void on_failed(const absl::Status& status) override { ADD_FAILURE() << status; }
  std::map<uint64_t, absl::Status> outcomes;
};

// A plan with one tensor of fp32 that is sent as fp16, and, with the same elements, one that is not compressed.
class EncodingStageTest : public ::testing::Test {
 protected:
  void begin(uint64_t elements, int32_t priority_of_second = 0, DataType sent_as = DataType::kFloat16) {
    plan::Tensor compressed{"a", elements, sent_as};
    compressed.memory = {DataType::kFloat32, elements};
    plan::Tensor second{"b", elements, DataType::kFloat32, priority_of_second};
    plan::Tensor urgent{"c", elements, sent_as, priority_of_second};
    urgent.memory = compressed.memory;
    begin({compressed, second, urgent});
  }
  void begin_blocks(DataType type, const plan::Memory& memory) {
    plan::Tensor tensor{"a", (memory.elements + kBlockValues - 1) / kBlockValues, type};
    tensor.memory = memory;
    begin({tensor});
  }
  void begin(std::vector<plan::Tensor> tensors) {
    std::vector<std::unique_ptr<pipeline::Stage>> stages;
    stages.push_back(std::make_unique<EncodingStage>(&kernels_));
    stage_ = static_cast<EncodingStage*>(stages.back().get());
    stages.push_back(std::make_unique<Network>());
    network_ = static_cast<Network*>(stages.back().get());
    pipeline_ = *pipeline::Pipeline::create(std::move(stages), &done_);
    auto plan = *plan::make_plan({{1e9, 1e9}, {1e9}}, std::move(tensors), {64 << 10});
    plan.epoch = 1;
    ASSERT_TRUE(pipeline_->on_event(pipeline::Welcome{.member = member_}).ok());
    ASSERT_TRUE(pipeline_->on_event(pipeline::Prepare{std::make_shared<const plan::Plan>(plan)}).ok());
    ASSERT_TRUE(pipeline_->on_event(pipeline::Commit{1}).ok());
  }
  void start(uint32_t tensor, std::vector<float>& values) {
    const MutableBytes memory = std::as_writable_bytes(std::span(values));
    pipeline_->start({{tensor, tensor, ReduceOp::kSum, Buffer::borrow_lasting(memory), memory}});
  }
  void encode_all() {
    while (pipeline_->has_work()) pipeline_->advance();
  }

  const kernels::Kernels kernels_ = *kernels::Kernels::choose("");
  uint32_t member_ = 0;  // the worker's number
  Done done_;
  EncodingStage* stage_ = nullptr;
  Network* network_ = nullptr;
  std::unique_ptr<pipeline::Pipeline> pipeline_;
};

TEST_F(EncodingStageTest, SendsRoundedContributionsAndWidensResults) {
  begin(5);
  std::vector<float> values = {1, 1 + 0x1p-11F, 3, 1e6F, 1e-9F};  // the second is a tie, and rounds to even
  start(0, values);
  encode_all();
  ASSERT_THAT(network_->pieces, SizeIs(1));
  const pipeline::PieceRequest& sent = network_->pieces[0];
  ASSERT_EQ(sent.input.size(), 10u);
  uint16_t halves[5];
  std::memcpy(halves, sent.input.bytes().data(), sizeof(halves));
  EXPECT_THAT(halves, ElementsAre(0x3C00, 0x3C00, 0x4200, 0x7C00, 0));
  halves[2] = 0x4400;
  std::memcpy(sent.output.data(), halves, sizeof(halves));
  network_->end(sent);
  EXPECT_THAT(values, ElementsAre(1, 1, 4, kInfinity, 0));
  EXPECT_TRUE(done_.outcomes.at(0).ok());
  EXPECT_EQ(stage_->counts().elements, 5u);
  EXPECT_EQ(stage_->counts().losses, (kernels::Losses{.clipped = 1, .flushed = 1}));
  EXPECT_TRUE(pipeline_->idle());
}

TEST_F(EncodingStageTest, ErrorFeedbackSendsLaterWhatAContributionLacks) {
  begin_blocks(top_k(1), {.elements = 3, .feeds_back = true});
  const auto sent = [&](std::vector<float> values) {
    start(0, values);
    encode_all();
    const pipeline::PieceRequest piece = std::move(network_->pieces.back());
    network_->pieces.clear();
    std::memcpy(piece.output.data(), piece.input.bytes().data(), piece.output.size());
    network_->end(piece);
    return values;
  };
  EXPECT_THAT(sent({1, 5, 2}), ElementsAre(0, 5, 0));
  EXPECT_THAT(sent({0, 0, 0}), ElementsAre(0, 0, 2));
  EXPECT_THAT(sent({-3, 0, 0}), ElementsAre(-2, 0, 0));
}

// Another worker's value is larger, so the result has its place.
TEST_F(EncodingStageTest, ElementsWhosePlacesAResultLacksAreSentAgain) {
  begin_blocks(top_k(1), {.elements = 3, .feeds_back = true});
  std::vector<float> values = {1, 5, 2};
  start(0, values);
  encode_all();
  std::vector<std::byte> other(size_of(top_k(1)));
  const float theirs[] = {9, 0, 0};
  kernels_.encode(top_k(1), {.values = std::as_bytes(std::span(theirs)).data(), .count = 3}, other.data());
  std::memcpy(network_->pieces[0].output.data(), other.data(), other.size());
  network_->end(network_->pieces[0]);
  EXPECT_THAT(values, ElementsAre(9, 0, 0));
  values = {0, 0, 0};
  start(0, values);
  encode_all();
  std::vector<float> again(3);
  kernels_.decode(top_k(1), network_->pieces[1].input.bytes().data(),
                  {.values = std::as_writable_bytes(std::span(again)).data(), .count = 3});
  EXPECT_THAT(again, ElementsAre(0, 5, 0));
}

TEST_F(EncodingStageTest, SignsComeBackAsBytes) {
  begin_blocks(kInt8Block, {.elements = 1500, .contribution = kSignBlock});
  std::vector<float> values(1500, -2);
  start(0, values);
  encode_all();
  ASSERT_EQ(network_->pieces[0].input.size(), 2 * size_of(kSignBlock));
  ASSERT_EQ(network_->pieces[0].output.size(), 2 * size_of(kInt8Block));
  const std::byte* const sent = network_->pieces[0].input.bytes().data();
  kernels_.sum(kSignBlock, kInt8Block, std::array{sent, sent}, network_->pieces[0].output.data(), 2, 1);
  network_->end(network_->pieces[0]);
  EXPECT_THAT(values, Each(-4.0F));
}

TEST_F(EncodingStageTest, RandomPlacesChangeFromStepToStep) {
  begin_blocks(random_k(1), {.elements = kBlockValues, .seed = 4});
  std::vector<size_t> places;
  for (int step = 0; step < 3; ++step) {
    std::vector<float> values(kBlockValues, 1);
    start(0, values);
    encode_all();
    network_->end(network_->pieces.back());
    places.push_back(static_cast<size_t>(std::ranges::find(values, 1.0F) - values.begin()));
  }
  EXPECT_LT(places[0], kBlockValues);
  EXPECT_NE(places[0], places[1]);
  EXPECT_NE(places[1], places[2]);
}

// So the bits do not depend on which machine has which rank.
TEST_F(EncodingStageTest, WorkersNumberDecidesRandomRounding) {
  const auto contribution = [&](uint32_t member) {
    member_ = member;
    begin_blocks(kInt4Block, {.elements = kBlockValues, .seed = 4});
    std::vector<float> values(kBlockValues, 0.3F);
    values[0] = 1;
    start(0, values);
    encode_all();
    const auto bytes = network_->pieces.back().input.bytes();
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  };
  const std::vector<std::byte> of_first = contribution(0);
  EXPECT_NE(contribution(1), of_first);
  EXPECT_EQ(contribution(0), of_first);
}

TEST_F(EncodingStageTest, OtherTensorsPassUnchanged) {
  begin(5);
  std::vector<float> values(5, 2);
  start(1, values);
  ASSERT_THAT(network_->pieces, SizeIs(1));
  EXPECT_EQ(network_->pieces[0].input.bytes().data(), std::as_bytes(std::span(values)).data());
  network_->end(network_->pieces[0]);
  EXPECT_TRUE(done_.outcomes.at(1).ok());
}

// Results of parts come in any order.
TEST_F(EncodingStageTest, PartsCoverTheTensorAndEndThePieceTogether) {
  constexpr uint64_t kElements = 1'000'000;
  begin(kElements, 0, DataType::kBFloat16);
  std::vector<float> values(kElements), expected(kElements);
  for (uint64_t i = 0; i < kElements; ++i) {
    values[i] = static_cast<float>(i % 251);  // has at most 8 significant bits
    expected[i] = values[i];
  }
  start(0, values);
  pipeline_->advance();
  EXPECT_THAT(network_->pieces, SizeIs(1)) << "one part at a time";
  encode_all();
  ASSERT_GT(network_->pieces.size(), 2u);
  std::ranges::fill(values, -1.0F);
  for (auto piece = network_->pieces.rbegin(); piece != network_->pieces.rend(); ++piece) {
    EXPECT_THAT(done_.outcomes, IsEmpty());
    network_->end(*piece);
  }
  EXPECT_TRUE(done_.outcomes.at(0).ok());
  EXPECT_EQ(values, expected);
}

TEST_F(EncodingStageTest, UrgentTensorsOvertake) {
  begin(1'000'000, -1);
  std::vector<float> first(1'000'000), urgent(1'000'000);
  start(0, first);
  pipeline_->advance();
  start(2, urgent);
  pipeline_->advance();
  ASSERT_THAT(network_->pieces, SizeIs(2));
  EXPECT_EQ(network_->pieces[1].tensor, 2u);
}

TEST_F(EncodingStageTest, AnErrorOfOnePartIsThatOfThePiece) {
  begin(1'000'000);
  std::vector<float> values(1'000'000);
  start(0, values);
  encode_all();
  for (const auto& piece : network_->pieces) {
    network_->end(piece, piece.first == 0 ? absl::UnavailableError("gone") : absl::OkStatus());
  }
  EXPECT_TRUE(absl::IsUnavailable(done_.outcomes.at(0)));
}

TEST_F(EncodingStageTest, FailureStopsTheUseOfMemory) {
  begin(1'000'000);
  std::vector<float> values(1'000'000, 7);
  start(0, values);
  pipeline_->advance();
  pipeline_->fail(absl::UnavailableError("gone"));
  EXPECT_FALSE(pipeline_->has_work());
  EXPECT_TRUE(pipeline_->idle());
  network_->end(network_->pieces[0]);
  EXPECT_THAT(done_.outcomes, IsEmpty()) << "the rank ends its requests itself";
  EXPECT_EQ(values[0], 7);
}

TEST_F(EncodingStageTest, ASizeThatDoesNotFitEndsThePiece) {
  begin(5);
  std::vector<float> values(4);
  start(0, values);
  EXPECT_EQ(done_.outcomes.at(0).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(EncodingStageTest, ATensorWithoutElementsEnds) {
  begin(0);
  std::vector<float> values;
  start(0, values);
  encode_all();
  ASSERT_THAT(network_->pieces, SizeIs(1));
  network_->end(network_->pieces[0]);
  EXPECT_TRUE(done_.outcomes.at(0).ok());
}

}  // namespace
}  // namespace gleaner::encoding
