#include "common/base/names.h"

#include <gmock/gmock.h>

#include "common/base/utf8.h"

namespace gleaner {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

TEST(Names, MayBeAnyTextOfVisibleCharacters) {
  for (const char* name : {"digits", "team-a/resnet 50", "caf\xc3\xa9", "\xe6\xa8\xa1\xe5\x9e\x8b", "\xf0\x9f\x9a\x80",
                           "layer.0.weight", "\"quoted\\\"", "\xc2\xa0"}) {
    EXPECT_TRUE(check_name("the job's name", name).ok()) << name;
    EXPECT_TRUE(is_utf8(name)) << name;
  }
  EXPECT_TRUE(check_name("the job's name", std::string(kMaxNameBytes, 'n')).ok());
}

TEST(Names, ErrorsSayWhatIsWrongAndWhatIsExpected) {
  const struct {
    std::string name, why;
  } wrong[] = {{"", "is empty"},
               {"caf\xe9", "'caf\\xe9' is not UTF-8 from byte 4"},
               {"caf\xc3", "is not UTF-8 from byte 4"},           // cut off
               {"\xc0\xaf", "is not UTF-8 from byte 1"},          // longer than necessary
               {"a\xe0\x80\xaf", "is not UTF-8 from byte 2"},     // longer than necessary
               {"\xed\xa0\x80", "is not UTF-8 from byte 1"},      // half of a surrogate pair
               {"\xf4\x90\x80\x80", "is not UTF-8 from byte 1"},  // above U+10FFFF
               {"\x80", "is not UTF-8 from byte 1"},              // begins within a character
               {"a\nb", "'a\\x0ab' has a control character at byte 2"},
               {std::string("a\0b", 3), "'a\\x00b' has a control character at byte 2"},
               {"\x1b[31mred", "has a control character at byte 1"},
               {"del\x7f", "has a control character at byte 4"},
               {"\xc2\x85", "has a control character at byte 1"},  // U+0085
               {std::string(kMaxNameBytes + 1, 'n'), "has 513 bytes"}};
  for (const auto& [name, why] : wrong) {
    const absl::Status status = check_name("the job's name", name);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << quote(name);
    const std::string message(status.message());
    EXPECT_THAT(message, AllOf(StartsWith("the job's name"), HasSubstr(why),
                               HasSubstr("expected at most 512 bytes of UTF-8 without control characters")));
    EXPECT_TRUE(check_name("message", message).ok()) << "a message can be logged as it is: " << message;
  }
  EXPECT_FALSE(check_name("the tensor's name", "four", 3).ok());
}

TEST(Names, QuotesAreShortAndVisible) {
  EXPECT_EQ(quote(""), "''");
  EXPECT_EQ(quote("caf\xc3\xa9"), "'caf\xc3\xa9'");
  EXPECT_EQ(quote("caf\xe9\t"), "'caf\\xe9\\x09'");
  EXPECT_EQ(quote(std::string(65, 'a')), "'" + std::string(64, 'a') + "...'");
}

}  // namespace
}  // namespace gleaner
