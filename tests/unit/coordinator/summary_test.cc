#include "operator/coordinator/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/unit/run/program.h"

namespace gleaner::coordinator {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(Summary, IsWrittenWholeOrNotAtAll) {
  const Scratch scratch;
  const std::string path = scratch / "summary.json";
  Summary summary;
  summary.workers = 4;
  summary.efficiency = 0.25;
  summary.error = "bytes that are no text: \xff";
  ASSERT_EQ(write_summary(summary, path), absl::OkStatus());
  const auto json = nlohmann::json::parse(contents(path));
  EXPECT_EQ(json["workers"], 4);
  EXPECT_EQ(json["efficiency"], 0.25);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(scratch.path()), {}), 1) << "no temporary is left";

  const std::string before = contents(path);
  std::filesystem::create_directory(scratch / "directory");
  const absl::Status status = write_summary(summary, scratch / "directory");
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("Is a directory"));
  EXPECT_EQ(contents(path), before);
}

TEST(Summary, SaysWhyItCannotBeWritten) {
  EXPECT_THAT(std::string(write_summary({}, "/dev/full").message()),
              AllOf(HasSubstr("/dev/full"), HasSubstr("No space left")));
  EXPECT_THAT(std::string(write_summary({}, "/no/such/directory/x").message()), HasSubstr("No such file"));
}

TEST(Summary, TableSpeaksOfStepsOnlyWhereThereWereAny) {
  Summary summary;
  summary.workers = 1;
  EXPECT_EQ(to_table(summary).find("efficiency"), std::string::npos);
  summary.steps = 3;
  summary.efficiency = 0.5;
  EXPECT_THAT(to_table(summary), AllOf(HasSubstr("efficiency"), HasSubstr("50.0 %"), HasSubstr("k = 0")));
}

}  // namespace
}  // namespace gleaner::coordinator
