#include "common/api/text.h"

#include <gtest/gtest.h>

#include <limits>

#include "common/api/meta.h"
#include "common/base/units.h"

namespace gleaner::api {
namespace {

TEST(QuantityTest, ReadsEverySuffix) {
  const std::pair<const char*, double> kCases[] = {
      {"4", 4},      {"250m", 0.25},   {"1.5", 1.5},        {"100u", 1e-4},  {"5n", 5e-9},    {"3k", 3000},
      {"2M", 2e6},   {"2G", 2e9},      {"1T", 1e12},        {"1P", 1e15},    {"12E", 12e18},  {"512Mi", 536870912},
      {"4Ki", 4096}, {"1Gi", 1 << 30}, {"1Ti", 1ULL << 40}, {"2e3", 2000},   {"2E-3", 0.002}, {"0", 0},
      {"-1", -1},    {".5", 0.5},      {"1Ei", 0x1p60},     {"1Pi", 0x1p50}, {"+3", 3}};
  for (const auto& [text, value] : kCases) {
    const auto read = parse_quantity(text);
    ASSERT_TRUE(read.ok()) << text;
    EXPECT_DOUBLE_EQ(*read, value) << text;
  }
}

TEST(QuantityTest, RefusesTextThatIsNoQuantity) {
  for (const char* text :
       {"", "m", "4 Gi", "1KiB", "4 ", " 4", "1i", "1Xi", "ten", "1e", "1e999", "1.2.3", "0x10", "inf"}) {
    EXPECT_FALSE(parse_quantity(text).ok()) << text;
  }
}

TEST(TimeTest, ReadsFractionsAndZones) {
  EXPECT_EQ(*parse_time("2026-01-31T12:00:00Z"), absl::FromUnixSeconds(1769860800));
  EXPECT_EQ(*parse_time("2026-01-31T13:00:00.25+01:00"), absl::FromUnixMillis(1769860800250));
  EXPECT_EQ(format_time(absl::FromUnixMillis(1769860800250)), "2026-01-31T12:00:00Z");
  for (const char* text : {"", "noon", "infinite-future", "2026-01-31", "2026-01-31 12:00:00", "0000-06-01T00:00:00Z",
                           "0001-01-01T00:00:00+01:00", "12026-01-31T12:00:00Z"}) {
    EXPECT_FALSE(parse_time(text).ok()) << text;
  }
}

TEST(NumbersTest, AreWholeAndFinite) {
  EXPECT_EQ(whole_number(2.5e9), 2500000000);
  EXPECT_EQ(whole_number(-3), 0);
  EXPECT_EQ(whole_number(std::numeric_limits<double>::quiet_NaN()), 0);
  EXPECT_EQ(whole_number(1e300), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(cpu_quantity(0.25), "250m");
  EXPECT_EQ(cpu_quantity(64), "64");
  EXPECT_EQ(decimal_text(0.972), "0.972");
  EXPECT_EQ(decimal_text(1.0), "1");
  EXPECT_EQ(decimal_text(59600000), "59600000") << "no exponents: the schema has none";
  EXPECT_EQ(decimal_text(0.00001), "0.00001");
  EXPECT_EQ(decimal_text(1e300), "1000000000000000");
  EXPECT_EQ(decimal_text(std::numeric_limits<double>::quiet_NaN()), "0");
}

TEST(BandwidthTest, IsWrittenAsItIsRead) {
  for (const double value : {1.0, 999.0, 1e3, 2.5e9, 25e9, 1e12, 123456789.0, 4e15}) {
    const auto again = parse_bits_per_second(bandwidth_text(value));
    ASSERT_TRUE(again.ok()) << bandwidth_text(value);
    EXPECT_EQ(*again, value);
  }
  EXPECT_EQ(bandwidth_text(25e9), "25Gbit");
}

TEST(IndexesTest, AreWrittenAsTheyAreRead) {
  const std::vector<std::pair<std::vector<uint32_t>, std::string>> cases = {
      {{}, ""}, {{0}, "0"}, {{4095}, "4095"}, {{0, 1}, "0-1"}, {{1, 3, 4, 5, 7}, "1,3-5,7"}, {{0, 2, 4}, "0,2,4"}};
  for (const auto& [indexes, text] : cases) {
    EXPECT_EQ(indexes_text(indexes), text);
    const auto parsed = parse_indexes(text, 4096);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, indexes);
  }
  for (const char* wrong :
       {"4096", "1,1", "3-1", "2,1", "1-", "-1", ",", "1,", "a", "0-4294967295", "1-2-3", "1-3,2"}) {
    EXPECT_FALSE(parse_indexes(wrong, 4096).ok()) << wrong;
  }
}

}  // namespace
}  // namespace gleaner::api
