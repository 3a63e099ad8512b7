// Tests of the sums that push_pulls over local ranks compute.
#include <algorithm>
#include <numeric>

#include "tests/unit/local/ranks.h"

namespace gleaner::testing {
namespace {

using ::testing::ElementsAre;

struct Case {
  DataType type;
  uint32_t ranks;
};

class Sums : public ::testing::TestWithParam<Case> {};

// Sizes just below and above cache lines, slices and turns, all in flight at once.
TEST_P(Sums, AreThoseOfTheOracleInRankOrder) {
  const auto [type, size] = GetParam();
  const std::vector<size_t> elements = {0, 1, 2, 3, 7, 15, 17, 63, 65, 1000, 4097, 16385, 70001, 1300003};
  Ranks ranks(size);
  ASSERT_TRUE(ranks.connect());
  std::vector<local::TensorShape> shapes;
  for (size_t count : elements) shapes.push_back({count, type});
  ranks.register_tensors(shapes);

  std::vector<std::vector<std::vector<std::byte>>> inputs(elements.size());  // by tensor and rank
  auto outputs = inputs;
  for (uint32_t tensor = 0; tensor < elements.size(); ++tensor) {
    for (uint32_t rank = 0; rank < size; ++rank) {
      inputs[tensor].push_back(random_tensor(type, elements[tensor], 1000 * tensor + rank));
      outputs[tensor].emplace_back(inputs[tensor][rank].size());
      ASSERT_TRUE(ranks[rank].group->start(tensor, ReduceOp::kSum, inputs[tensor][rank], outputs[tensor][rank]).ok());
    }
  }
  ASSERT_TRUE(ranks.until(
      [&] { return ranks.all([&](const TestRank& rank) { return rank.done.size() == elements.size(); }); }));
  for (uint32_t tensor = 0; tensor < elements.size(); ++tensor) {
    const auto expected = expected_sum(type, inputs[tensor]);
    for (uint32_t rank = 0; rank < size; ++rank) {
      EXPECT_TRUE(ranks[rank].done[tensor].ok());
      EXPECT_TRUE(outputs[tensor][rank] == expected) << elements[tensor] << " elements at rank " << rank;
    }
  }
  EXPECT_EQ(ranks[0].reduced.size(), elements.size());
  for (uint32_t rank = 1; rank < size; ++rank) EXPECT_TRUE(ranks[rank].reduced.empty());
  EXPECT_TRUE(ranks.all([](const TestRank& rank) { return rank.group->idle() && !rank.group->has_work(); }));
}

INSTANTIATE_TEST_SUITE_P(TypesAndSizes, Sums,
                         ::testing::Values(Case{DataType::kFloat32, 2}, Case{DataType::kFloat64, 3},
                                           Case{DataType::kFloat16, 2}, Case{DataType::kFloat16, 5},
                                           Case{DataType::kBFloat16, 4}, Case{DataType::kInt32, 8}),
                         [](const auto& example) {
                           return std::string(name_of(example.param.type)) + "_" + std::to_string(example.param.ranks);
                         });

// (1 + 2^-24) + 2^-24 is 1, but 2^-24 + 2^-24 + 1 is not, so the result shows the order.
TEST(GroupSums, AddInRankOrder) {
  Ranks ranks(3);
  ASSERT_TRUE(ranks.connect());
  ranks.register_tensors({{1, DataType::kFloat32}});
  std::vector<float> values = {1.0f, 0x1p-24f, 0x1p-24f};
  for (size_t step = 0; step < 3; ++step) {
    std::vector<float> outputs(3);
    for (size_t rank = 0; rank < 3; ++rank) {
      ASSERT_TRUE(ranks[rank]
                      .group
                      ->start(0, ReduceOp::kSum, std::as_bytes(std::span(&values[rank], 1)),
                              std::as_writable_bytes(std::span(&outputs[rank], 1)))
                      .ok());
    }
    ASSERT_TRUE(ranks.until([&] { return ranks.all([&](const auto& rank) { return rank.done_count == step + 1; }); }));
    const float expected = (values[0] + values[1]) + values[2];
    EXPECT_EQ(expected, step == 2 ? 1.0f + 0x1p-23f : 1.0f);
    EXPECT_THAT(outputs, ElementsAre(expected, expected, expected));
    std::rotate(values.begin(), values.begin() + 2, values.end());
  }
}

// 20000 is 0x74E2 in fp16 and 0x469C in bf16 (19968). Four of them exceed the range of fp16.
TEST(GroupSums, PartialSumsOfHalvesAreFloat32) {
  Ranks ranks(4);
  ASSERT_TRUE(ranks.connect());
  ranks.register_tensors({{2, DataType::kFloat16}, {2, DataType::kBFloat16}});
  std::vector<float> given;
  ranks[0].network = [&](uint32_t tensor, MutableBytes sum) {
    const auto* floats = reinterpret_cast<const float*>(sum.data());
    given.insert(given.end(), floats, floats + sum.size() / sizeof(float));
    ranks[0].group->publish(tensor, absl::OkStatus());
  };
  const std::vector<std::vector<uint16_t>> inputs = {{0x74E2, 0x0001}, {0x469C, 0x3F80}};
  std::vector<uint16_t> output(2);
  for (uint32_t tensor = 0; tensor < 2; ++tensor) {
    for (size_t rank = 0; rank < 4; ++rank) {
      ASSERT_TRUE(ranks[rank]
                      .group
                      ->start(tensor, ReduceOp::kAverage, std::as_bytes(std::span(inputs[tensor])),
                              std::as_writable_bytes(std::span(output)))
                      .ok());
    }
    ASSERT_TRUE(
        ranks.until([&] { return ranks.all([&](const auto& rank) { return rank.done_count == tensor + 1; }); }));
  }
  EXPECT_THAT(given, ElementsAre(80000, 4 * 0x1p-24f, 4 * 19968, 4));
}

// The leader's network replaces the sum. All ranks must get the bytes that the network left in the sum's memory.
TEST(GroupSums, PublishTheResultOfTheNetwork) {
  Ranks ranks(2);
  ASSERT_TRUE(ranks.connect());
  ranks.register_tensors({{3, DataType::kInt32}});
  std::vector<int32_t> given;
  ranks[0].network = [&](uint32_t tensor, MutableBytes sum) {
    auto* words = reinterpret_cast<int32_t*>(sum.data());
    given.assign(words, words + sum.size() / sizeof(int32_t));
    for (int32_t& word : std::span(words, given.size())) word *= 10;
    ranks[0].group->publish(tensor, absl::OkStatus());
  };
  std::vector<std::vector<int32_t>> data = {{1, 2, 3}, {10, 20, 30}};
  // Each rank's input is also its output.
  for (size_t rank = 0; rank < 2; ++rank) {
    ASSERT_TRUE(ranks[rank]
                    .group
                    ->start(0, ReduceOp::kAverage, std::as_bytes(std::span(data[rank])),
                            std::as_writable_bytes(std::span(data[rank])))
                    .ok());
  }
  ASSERT_TRUE(ranks.until([&] { return ranks.all([](const auto& rank) { return rank.done_count == 1; }); }));
  EXPECT_THAT(given, ElementsAre(11, 22, 33));
  EXPECT_THAT(ranks[0].ops, ElementsAre(ReduceOp::kAverage));
  for (const auto& output : data) EXPECT_THAT(output, ElementsAre(110, 220, 330));
}

// Each rank uses another order, starts the next step from on_done(), and results come late. Steps must not mix.
TEST(GroupSums, StepsOfManyTensorsInAnyOrder) {
  constexpr uint32_t kRanks = 3;
  constexpr uint32_t kTensors = 40;
  constexpr uint64_t kSteps = 20;
  Ranks ranks(kRanks);
  ASSERT_TRUE(ranks.connect());
  std::vector<local::TensorShape> shapes;
  for (uint32_t i = 0; i < kTensors; ++i) shapes.push_back({1 + i * 97, DataType::kInt32});
  ranks.register_tensors(shapes);

  std::vector<uint32_t> late;  // reduced, and not published yet
  ranks[0].network = [&](uint32_t tensor, MutableBytes) { late.push_back(tensor); };
  struct Place {
    uint64_t step = 0;
    std::vector<int32_t> data;
  };
  std::vector<std::vector<Place>> places(kRanks, std::vector<Place>(kTensors));
  const auto value = [](uint32_t rank, uint32_t tensor, uint64_t step) {
    return static_cast<int32_t>(rank * 1000003 + tensor * 1009 + step);
  };
  const auto begin = [&](uint32_t rank, uint32_t tensor) {
    Place& place = places[rank][tensor];
    place.data.assign(shapes[tensor].elements, value(rank, tensor, place.step));
    const auto bytes = std::as_writable_bytes(std::span(place.data));
    ASSERT_TRUE(ranks[rank].group->start(tensor, ReduceOp::kSum, bytes, bytes).ok());
  };
  std::mt19937 random(7);
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    ranks[rank].after_done = [&, rank](uint32_t tensor) {
      Place& place = places[rank][tensor];
      int32_t expected = 0;
      for (uint32_t each = 0; each < kRanks; ++each) expected += value(each, tensor, place.step);
      EXPECT_EQ(place.data, std::vector<int32_t>(shapes[tensor].elements, expected));
      if (++place.step < kSteps) begin(rank, tensor);
    };
    std::vector<uint32_t> order(kTensors);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    for (uint32_t tensor : order) begin(rank, tensor);
  }
  ASSERT_TRUE(ranks.until([&] {
    if (!late.empty() && random() % 3 == 0) {
      std::swap(late[random() % late.size()], late.back());
      ranks[0].group->publish(late.back(), absl::OkStatus());
      late.pop_back();
    }
    return ranks.all([&](const auto& rank) { return rank.done_count == kTensors * kSteps; });
  }));
}

// A tensor of 64 MiB takes many polls, each of which does a part.
TEST(GroupSums, LargeTensorsDoNotBlockThePoll) {
  Ranks ranks(2);
  ASSERT_TRUE(ranks.connect());
  constexpr size_t kManyElements = 16 << 20;
  ranks.register_tensors({{kManyElements, DataType::kFloat32}});
  std::vector<float> first(kManyElements);
  std::vector<float> second(kManyElements);
  for (size_t i = 0; i < kManyElements; ++i) {
    first[i] = static_cast<float>(i);
    second[i] = static_cast<float>(i % 1001);
  }
  std::vector<float> output(kManyElements);
  const auto bytes = std::as_writable_bytes(std::span(second));
  ASSERT_TRUE(
      ranks[0]
          .group->start(0, ReduceOp::kSum, std::as_bytes(std::span(first)), std::as_writable_bytes(std::span(output)))
          .ok());
  ASSERT_TRUE(ranks[1].group->start(0, ReduceOp::kSum, bytes, bytes).ok());
  int turns = 0;
  ASSERT_TRUE(ranks.until([&] {
    ++turns;
    return ranks.all([](const auto& rank) { return rank.done_count == 1; });
  }));
  EXPECT_GT(turns, 100);
  for (size_t i = 0; i < kManyElements; ++i) {
    ASSERT_EQ(output[i], first[i] + static_cast<float>(i % 1001)) << i;
    ASSERT_EQ(second[i], output[i]) << i;
  }
}

// More messages than a socket can hold.
TEST(GroupSums, ManySmallTensorsAtOnce) {
  constexpr uint32_t kTensors = 20000;
  Ranks ranks(2);
  ASSERT_TRUE(ranks.connect());
  ranks.register_tensors(std::vector<local::TensorShape>(kTensors, {1, DataType::kInt32}));
  std::vector<int32_t> data(2 * kTensors, 21);
  for (uint32_t i = 0; i < 2 * kTensors; ++i) {
    const auto bytes = std::as_writable_bytes(std::span(&data[i], 1));
    ASSERT_TRUE(ranks[i / kTensors].group->start(i % kTensors, ReduceOp::kSum, bytes, bytes).ok());
  }
  // Rank 1 reads nothing until rank 0 can't send any more.
  for (int i = 0; i < 1000; ++i) ranks[1].turn(0);
  for (int i = 0; i < 1000; ++i) ranks[0].turn(0);
  EXPECT_FALSE(ranks[0].group->idle());
  ASSERT_TRUE(ranks.until([&] { return ranks.all([](const auto& rank) { return rank.done_count == kTensors; }); }));
  EXPECT_TRUE(std::all_of(data.begin(), data.end(), [](int32_t word) { return word == 42; }));
}

}  // namespace
}  // namespace gleaner::testing
