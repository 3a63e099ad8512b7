// Replays recorded series. Each file under recorded/ has a series and the table of decisions that must follow.
#include "operator/autoscale/replay.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace gleaner::autoscale {
namespace {

using nlohmann::json;

json read(const std::filesystem::path& path) {
  std::ifstream file(path);
  return json::parse(file);
}

class Recorded : public ::testing::TestWithParam<std::string> {};

std::vector<std::string> recordings() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(GLEANER_RECORDED)) names.push_back(entry.path().stem());
  std::sort(names.begin(), names.end());
  return names;
}

// The table has only decisions that change something: [seconds, job, had, wanted, reason].
TEST_P(Recorded, GivesDecisionsOfTable) {
  const json recording = read(std::filesystem::path(GLEANER_RECORDED) / absl::StrCat(GetParam(), ".json"));
  const auto decisions = replay(recording);
  ASSERT_TRUE(decisions.ok()) << decisions.status();
  json table = json::array();
  std::map<std::string, json> last;
  for (const Decided& decided : *decisions) {
    const json what = {decided.verdict.wanted, std::string(to_string(decided.verdict.code))};
    if (last[decided.job] == what) continue;
    last[decided.job] = what;
    table.push_back({decided.at, decided.job, decided.had, what[0], what[1]});
  }
  EXPECT_EQ(table, recording.at("decisions")) << to_text(*decisions, false);
}

INSTANTIATE_TEST_SUITE_P(All, Recorded, ::testing::ValuesIn(recordings()), [](const auto& each) { return each.param; });

TEST(Replay, NamesErrorInRecording) {
  EXPECT_TRUE(absl::StrContains(replay(json::object()).status().message(), "jobs"));
  const json job = {{"key", "a"}, {"workers", {1e9, 1e9}}, {"bytesPerStep", 1e8}};
  const auto with = [&job](const json& rounds) { return replay({{"jobs", {job}}, {"rounds", rounds}}).status(); };
  EXPECT_TRUE(with(json::array()).ok());
  EXPECT_TRUE(absl::StrContains(with({{{"at", 2}}, {{"at", 1}}}).message(), "not in order of time"));
  EXPECT_TRUE(absl::StrContains(with({{{"at", 0}, {"jobs", {{"b", nullptr}}}}}).message(), "b, which is not known"));
}

}  // namespace
}  // namespace gleaner::autoscale
