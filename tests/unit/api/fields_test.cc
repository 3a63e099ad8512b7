#include "common/api/fields.h"

#include <gtest/gtest.h>

namespace gleaner::api {
namespace {

using nlohmann::json;

TEST(FieldsTest, AbsentAndNullLeaveTheValue) {
  absl::Status status;
  const json document = {{"a", nullptr}};
  const Fields fields(document, "", status);
  std::string text = "as it was";
  int number = 7;
  fields.text("a", text);
  fields.text("b", text);
  fields.object("c").object("d").number("e", number);
  EXPECT_EQ(text, "as it was");
  EXPECT_EQ(number, 7);
  EXPECT_TRUE(status.ok());
}

TEST(FieldsTest, TheFirstErrorStaysAndEndsTheReading) {
  absl::Status status;
  const json document = {{"a", 1}, {"b", 2}, {"c", "text"}};
  const Fields fields(document, "spec", status);
  std::string text;
  int number = 0;
  fields.text("a", text);
  fields.text("b", text);
  fields.text("c", text);
  fields.number("b", number);
  EXPECT_EQ(status.message(), "spec.a: expected a string, got 1");
  EXPECT_EQ(text, "");
  EXPECT_EQ(number, 0);
}

TEST(FieldsTest, NumbersStayWithinTheirType) {
  const json document = {{"a", 4294967296}, {"b", 4294967295}, {"c", uint64_t{1} << 63}};
  uint32_t narrow = 0;
  uint64_t wide = 0;
  absl::Status status;
  Fields(document, "", status).number("b", narrow);
  EXPECT_EQ(narrow, 4294967295U);
  Fields(document, "", status).number("a", narrow);
  EXPECT_EQ(status.message(), "a: expected a whole number from 0 to 4294967295, got 4294967296");
  status = absl::OkStatus();
  Fields(document, "", status).number("c", wide);
  EXPECT_EQ(status.message(), "c: expected a whole number of at least 0, got 9223372036854775808");
}

TEST(FieldsTest, LongAndBrokenTextIsQuotedShort) {
  absl::Status status;
  const json document = {{"a", std::string(1000, 'x')}, {"b", "\xff"}};
  const Fields fields(document, "", status);
  int number = 0;
  fields.number("a", number);
  EXPECT_LT(status.message().size(), 200U);
  status = absl::OkStatus();
  fields.number("b", number);
  EXPECT_EQ(status.message(), "b: expected a whole number from 0 to 2147483647, got \"\xef\xbf\xbd\"");
}

TEST(FieldsTest, ListsReplaceEarlierElements) {
  absl::Status status;
  const json document = {{"list", {{{"n", 1}}, {{"n", 2}}}}, {"bad", {{{"n", 1}}, 5}}};
  const Fields fields(document, "", status);
  std::vector<int> numbers = {9, 9, 9};
  const auto read = [](const Fields& element, int& value) { element.number("n", value); };
  fields.list("list", numbers, read);
  EXPECT_EQ(numbers, (std::vector<int>{1, 2}));
  fields.list("bad", numbers, read);
  EXPECT_EQ(status.message(), "bad[1]: expected an object, got 5");
}

}  // namespace
}  // namespace gleaner::api
