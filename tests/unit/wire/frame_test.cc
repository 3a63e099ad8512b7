#include "common/wire/frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace gleaner::wire {
namespace {

using ::testing::HasSubstr;

ConstBytes bytes_of(absl::string_view text) { return {reinterpret_cast<const std::byte*>(text.data()), text.size()}; }

absl::StatusOr<Header> decode(const Header& header) {
  return decode_header(std::as_bytes(std::span(&header, 1)).first<kHeaderBytes>());
}

Header sealed_push() {
  Header header;
  header.type = FrameType::kPush;
  header.data_type = DataType::kBFloat16;
  header.op = ReduceOp::kAverage;
  header.job = 0x0123456789abcdef;
  header.epoch = 3;
  header.sender = 2;
  header.tensor = 77;
  header.partition = 5;
  header.step = 1'000'000'007;
  seal(header, bytes_of("payload"));
  return header;
}

// Sets the checksum of a header that a test has changed.
void reseal(Header& header) { header.header_crc = crc32c(std::as_bytes(std::span(&header, 1)).first(60)); }

TEST(Crc32c, CheckValueOfTheStandard) {
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xE3069283u);
  EXPECT_EQ(crc32c({}), 0u);
}

TEST(Frame, RoundTrip) {
  const Header sent = sealed_push();
  const auto got = decode(sent);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(std::memcmp(&sent, &*got, sizeof(Header)), 0);
  EXPECT_EQ(got->payload_bytes, 7u);
  EXPECT_TRUE(check_payload(*got, bytes_of("payload")).ok());
  EXPECT_TRUE(absl::IsDataLoss(check_payload(*got, bytes_of("payloaf"))));
  EXPECT_TRUE(absl::IsDataLoss(check_payload(*got, bytes_of("payloa"))));
}

TEST(Frame, AnExistingChecksumIsNotComputedAgain) {
  Header once = sealed_push();
  Header again = once;
  seal(again, bytes_of("payload"));
  EXPECT_EQ(std::memcmp(&once, &again, sizeof(Header)), 0);
  seal(again, bytes_of("another"));
  EXPECT_EQ(again.payload_crc, once.payload_crc);
  seal(again, {});
  EXPECT_EQ(again.payload_crc, 0u);
}

// Other releases depend on this layout (docs/protocol.md).
TEST(Frame, LayoutOnTheWire) {
  const Header header = sealed_push();
  const auto* raw = reinterpret_cast<const unsigned char*>(&header);
  EXPECT_EQ(std::memcmp(raw, "GLN1", 4), 0);
  EXPECT_EQ(raw[4], 5);   // version
  EXPECT_EQ(raw[5], 16);  // PUSH
  EXPECT_EQ(raw[6], 4);   // bf16
  EXPECT_EQ(raw[7], 2);   // average
  EXPECT_EQ(raw[8], 0xef);
  EXPECT_EQ(raw[16], 3);   // epoch
  EXPECT_EQ(raw[20], 2);   // sender
  EXPECT_EQ(raw[24], 77);  // tensor
  EXPECT_EQ(raw[28], 5);   // partition
  EXPECT_EQ(raw[48], 7);   // payload bytes
}

TEST(Frame, EveryFlippedBitIsDetected) {
  for (size_t bit = 0; bit < sizeof(Header) * 8; ++bit) {
    Header header = sealed_push();
    reinterpret_cast<unsigned char*>(&header)[bit / 8] ^= static_cast<unsigned char>(1 << (bit % 8));
    EXPECT_FALSE(decode(header).ok()) << "bit " << bit;
  }
}

TEST(Frame, RefusesUnknownVersionsAndTypes) {
  Header version = sealed_push();
  version.version = 3;
  reseal(version);
  EXPECT_THAT(std::string(decode(version).status().message()), HasSubstr("version 3, this side version 5"));
  Header type = sealed_push();
  type.type = static_cast<FrameType>(99);
  reseal(type);
  EXPECT_THAT(std::string(decode(type).status().message()), HasSubstr("unknown type 99"));
  Header data_type = sealed_push();
  data_type.data_type = static_cast<DataType>(0);
  reseal(data_type);
  EXPECT_FALSE(decode(data_type).ok());
  data_type.type = FrameType::kSlice;
  reseal(data_type);
  EXPECT_FALSE(decode(data_type).ok()) << "a slice of a tensor has a type";
  data_type.tensor |= kCallBit;
  reseal(data_type);
  EXPECT_TRUE(decode(data_type).ok()) << "a slice of a call has none";
  Header op = sealed_push();
  op.op = static_cast<ReduceOp>(4);
  reseal(op);
  EXPECT_FALSE(decode(op).ok());
  Header large = sealed_push();
  large.payload_bytes = kMaxPayloadBytes + 1;
  reseal(large);
  EXPECT_FALSE(decode(large).ok());
  Header schedule = sealed_push();
  schedule.schedule = 1;
  reseal(schedule);
  EXPECT_FALSE(decode(schedule).ok()) << "only slices have a schedule";
}

TEST(Frame, SlicesCarryTheNumbersOfBothDirections) {
  Header slice = sealed_push();
  slice.type = FrameType::kSlice;
  slice.sequence = 4;
  slice.confirmed = 9;
  reseal(slice);
  EXPECT_TRUE(decode(slice).ok()) << decode(slice).status();
  slice.op = static_cast<ReduceOp>(0);
  reseal(slice);
  EXPECT_FALSE(decode(slice).ok());
  Header arrived = sealed_push();
  arrived.type = FrameType::kArrived;
  arrived.confirmed = 9;
  arrived.payload_bytes = 0;
  reseal(arrived);
  EXPECT_TRUE(decode(arrived).ok()) << decode(arrived).status();
  arrived.sequence = 4;
  reseal(arrived);
  EXPECT_FALSE(decode(arrived).ok());
  Header await = sealed_push();
  await.type = FrameType::kAwait;
  await.confirmed = 9;
  await.schedule = 1;
  await.payload_bytes = 0;
  reseal(await);
  EXPECT_TRUE(decode(await).ok()) << decode(await).status();
  await.op = static_cast<ReduceOp>(0);
  reseal(await);
  EXPECT_FALSE(decode(await).ok());
}

TEST(Frame, JobNumbersDiffer) {
  EXPECT_EQ(job_number("digits"), job_number("digits"));
  EXPECT_NE(job_number("digits"), job_number("digitS"));
}

TEST(Frame, TheHeaderHasAChecksumEvenIfThePayloadHasNone) {
  Header header;
  header.type = FrameType::kPush;
  header.payload_crc = 7;  // left from an earlier use of the header
  seal_unchecked(header, 100'000);
  const auto bytes = std::as_writable_bytes(std::span<Header, 1>(&header, 1));
  const auto decoded = decode_header(bytes);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->payload_bytes, 100'000u);
  EXPECT_EQ(decoded->payload_crc, 0u);
  bytes[20] ^= std::byte{1};
  EXPECT_TRUE(absl::IsDataLoss(decode_header(bytes).status()));
}

}  // namespace
}  // namespace gleaner::wire
