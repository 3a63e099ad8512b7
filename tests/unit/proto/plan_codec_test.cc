#include "common/proto/plan_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/plan/partitioner.h"

namespace gleaner::proto {
namespace {

using testing::HasSubstr;

plan::Plan sample() {
  plan::Fleet fleet{{1e9, 2e9, 3e9}, {1e9}};
  std::vector<plan::Tensor> tensors = {{"conv.weight", 100000, DataType::kFloat32, -3},
                                       {"empty", 0, DataType::kFloat64, 0},
                                       {"one", 1, DataType::kBFloat16, 7},
                                       {"caf\xc3\xa9 \xf0\x9f\x9a\x80", 33, DataType::kFloat16, 0},
                                       {"accumulates", 33, DataType::kInt32, 0, 0, true},
                                       {"not too far apart", 33, DataType::kFloat32, 0, 0, true, 0}};
  tensors[1].group = {0, 2};
  tensors[3].memory = {DataType::kFloat32, 33};
  plan::Plan plan = *plan::make_plan(fleet, tensors, {4096});
  plan.epoch = 7;
  plan.local_ranks = 2;
  for (size_t i = 0; i < plan.members.size(); ++i) plan.members[i].address = "10.0.0.1:7000";
  plan.members[1].endpoints = {"shm://host.1/dev/shm/a", "tcp://10.0.0.1:7000"};
  plan.members.push_back({});
  plan.members.push_back({1e9, "10.0.0.2:7000", 3});
  plan.members.back().on_standby = true;
  plan.members[3].since = 5;
  plan.tensors[0].since = 2;
  plan.schedules = {{"ring", {}, 0, 7, {2, 1}, {{1, 1, 1}, {2, 1, 3}}, {2, 0, 1}}, {"blueconnect", {3}, 2}};
  plan.tensors[0].schedule = 1;
  plan.tensors[2].schedule = 0;
  plan.tensors[2].schedule_from = 1000;
  for (plan::Partition& partition : plan.partitions) partition.since = 2 + partition.owner;
  return plan;
}

v1::Plan encoded() {
  v1::Plan message;
  encode(sample(), &message);
  return message;
}

TEST(PlanCodec, NamesAreUtf8WithoutControlCharacters) {
  for (const char* name : {"caf\xe9", "two\nlines", "cut\xe6\xa8"}) {
    google::protobuf::RepeatedPtrField<v1::Tensor> tensors;
    encode(plan::Tensor{name, 1, DataType::kFloat32, 0}, tensors.Add());
    EXPECT_TRUE(absl::IsInvalidArgument(decode(tensors).status()));
    google::protobuf::RepeatedPtrField<v1::Operation> operations;
    encode(plan::Operation{name, ReduceOp::kSum}, operations.Add());
    EXPECT_TRUE(absl::IsInvalidArgument(decode(operations).status()));
  }
}

TEST(PlanCodec, KeepsTheClassOfBits) {
  plan::Plan plan = sample();
  plan.bits = plan::Bits::kRankOrder;
  for (plan::Tensor& tensor : plan.tensors) tensor.schedule.reset();
  v1::Plan message;
  encode(plan, &message);
  const absl::StatusOr<plan::Plan> decoded = decode(message);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->bits, plan::Bits::kRankOrder);
}

TEST(PlanCodec, RoundTrip) {
  std::string bytes;
  ASSERT_TRUE(encoded().SerializeToString(&bytes));
  v1::Plan message;
  ASSERT_TRUE(message.ParseFromString(bytes));
  const auto plan = decode(message);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(*plan, sample());
}

TEST(PlanCodec, IsCompact) {
  plan::Plan large = *plan::make_plan({std::vector<double>(64, 1e9), {}}, {{"w", uint64_t{1} << 28}}, {4096});
  v1::Plan message;
  encode(large, &message);
  EXPECT_LT(message.ByteSizeLong(), large.partitions.size() * 5);
}

TEST(PlanCodec, InconsistentMessagesAreRefused) {
  const auto refusal = [](auto change) {
    v1::Plan message = encoded();
    change(message);
    return std::string(decode(message).status().message());
  };
  EXPECT_EQ(refusal([](v1::Plan&) {}), "");
  EXPECT_THAT(refusal([](v1::Plan& m) { m.mutable_partition_counts()->RemoveLast(); }), HasSubstr("counts"));
  EXPECT_THAT(refusal([](v1::Plan& m) { m.mutable_owners()->RemoveLast(); }), HasSubstr("owners"));
  EXPECT_THAT(refusal([](v1::Plan& m) { m.add_partition_bytes(4); }), HasSubstr("sizes"));
  EXPECT_THAT(refusal([](v1::Plan& m) { m.set_partition_counts(0, 0xffffffff); }), HasSubstr("by their counts"));
  EXPECT_THAT(refusal([](v1::Plan& m) { m.set_owners(0, 99); }), HasSubstr("owner 99"));
  EXPECT_THAT(refusal([](v1::Plan& m) { m.set_partition_bytes(0, 0); }), HasSubstr("partition of 0"));
  EXPECT_THAT(refusal([](v1::Plan& m) { m.set_partition_bytes(0, m.partition_bytes(0) + 4); }), HasSubstr("bytes"));
  EXPECT_THAT(refusal([](v1::Plan& m) { m.mutable_tensors(0)->set_type(0); }), HasSubstr("data type 0"));
  EXPECT_THAT(refusal([](v1::Plan& m) { m.mutable_tensors(0)->set_type(257); }), HasSubstr("data type 257"));
  EXPECT_THAT(refusal([](v1::Plan& m) { m.mutable_tensors(2)->set_name("empty"); }), HasSubstr("twice"));
  EXPECT_THAT(refusal([](v1::Plan& m) { m.set_workers(0); }), HasSubstr("0 workers"));
  EXPECT_THAT(refusal([](v1::Plan& m) { m.set_owned_since(0, 8); }), HasSubstr("owned since epoch 8"));
  EXPECT_THAT(refusal([](v1::Plan& m) { m.add_owned_since(1); }), HasSubstr("epochs of ownership"));
  EXPECT_THAT(refusal([](v1::Plan& m) { m.mutable_members(0)->set_bits_per_second(0); }), HasSubstr("bit/s"));
  EXPECT_THAT(refusal([](v1::Plan& m) { m.mutable_members(0)->set_address("x"); }), HasSubstr("not an address"));
}

TEST(StatusCodec, RoundTripAndUnknownCodes) {
  v1::Status message;
  for (const absl::Status& status :
       {absl::OkStatus(), absl::UnavailableError("gone"), absl::UnauthenticatedError("")}) {
    encode(status, &message);
    EXPECT_EQ(decode(message), status);
  }
  message.set_code(99);
  message.set_message("later");
  EXPECT_EQ(decode(message), absl::UnknownError("later"));
  message.set_code(-1);
  EXPECT_EQ(decode(message), absl::UnknownError("later"));
}

}  // namespace
}  // namespace gleaner::proto
