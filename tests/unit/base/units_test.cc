// Tests of parsing and printing bandwidths, sizes and times for people.
#include "common/base/units.h"

#include <gmock/gmock.h>

namespace gleaner {
namespace {

using testing::HasSubstr;

TEST(Units, Bandwidths) {
  const auto bits = [](absl::string_view text) { return parse_bits_per_second(text).value_or(-1); };
  EXPECT_EQ(bits("25Gbit"), 25e9);
  EXPECT_EQ(bits("200mbit"), 200e6);
  EXPECT_EQ(bits("1.5 Gbit/s"), 1.5e9);
  EXPECT_EQ(bits("10Gbps"), 10e9);
  EXPECT_EQ(bits("100000000"), 1e8);
  EXPECT_EQ(bits("64kbit"), 64e3);
  EXPECT_EQ(bits("1Tbit"), 1e12);
  EXPECT_EQ(bits(" 7bit "), 7);
  EXPECT_EQ(bits("2G"), 2e9);
  EXPECT_EQ(bits("350Mb"), 350e6);
  EXPECT_EQ(bits("2.5Gb/s"), 2.5e9);
  EXPECT_EQ(bits("1GBit/s"), 1e9);
}

TEST(Units, BadBandwidths) {
  for (const char* text : {"", "Gbit", "0", "0Gbit", "-1Gbit", "1Gibit", "1GB", "1.2.3Gbit", ".", "nan", "inf", "1e9",
                           "25Gbit x", "1,5Gbit"}) {
    const auto parsed = parse_bits_per_second(text);
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(parsed.status().message()), HasSubstr("25Gbit")) << text;
  }
  EXPECT_FALSE(parse_bits_per_second(std::string(400, '9')).ok());
}

TEST(Units, BytesAreNoBandwidth) {
  for (const char* text : {"1GB", "1GB/s", "10GBps", "7B"}) {
    EXPECT_THAT(std::string(parse_bits_per_second(text).status().message()), HasSubstr("is in bytes (B)")) << text;
  }
}

TEST(Units, Sizes) {
  const auto bytes = [](absl::string_view text) { return parse_bytes(text).value_or(~uint64_t{0}); };
  EXPECT_EQ(bytes("4096"), 4096u);
  EXPECT_EQ(bytes("0"), 0u);
  EXPECT_EQ(bytes("4MiB"), 4u << 20);
  EXPECT_EQ(bytes("64 kiB"), 64u << 10);
  EXPECT_EQ(bytes("1GiB"), 1u << 30);
  EXPECT_EQ(bytes("1MB"), 1000000u);
  EXPECT_EQ(bytes("1.5KiB"), 1536u);
  EXPECT_EQ(bytes("2T"), uint64_t{2} << 40);
  EXPECT_EQ(bytes("12B"), 12u);
  EXPECT_EQ(bytes("350MB"), 350000000u);
  EXPECT_EQ(bytes("350M"), uint64_t{350} << 20);
}

TEST(Units, BitsAreNoSize) {
  for (const char* text : {"350Mb", "350mb", "12b", "1 Gib"}) {
    EXPECT_THAT(std::string(parse_bytes(text).status().message()), HasSubstr("is in bits (b)")) << text;
  }
}

TEST(Units, BadSizes) {
  for (const char* text : {"", "MiB", "-1", "1.5", "0.3KiB", "4 potatoes", "8EiB", "9999999TiB", "4Mbit", "1e6"}) {
    const auto parsed = parse_bytes(text);
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(parsed.status().message()), HasSubstr("4MiB")) << text;
  }
}

TEST(Units, AreWrittenReadably) {
  EXPECT_EQ(format_bits_per_second(25e9), "25 Gbit/s");
  EXPECT_EQ(format_bits_per_second(1.5e6), "1.5 Mbit/s");
  EXPECT_EQ(format_bits_per_second(12), "12 bit/s");
  EXPECT_EQ(format_bytes(512), "512 B");
  EXPECT_EQ(format_bytes(4 << 20), "4.00 MiB");
  EXPECT_EQ(format_bytes(1536), "1.50 KiB");
  EXPECT_EQ(format_seconds(0), "0 s");
  EXPECT_EQ(format_seconds(12.3e-6), "12.3 us");
  EXPECT_EQ(format_seconds(0.0123), "12.3 ms");
  EXPECT_EQ(format_seconds(75.25), "75.25 s");
}

}  // namespace
}  // namespace gleaner
