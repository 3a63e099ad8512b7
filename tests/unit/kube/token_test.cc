#include "common/kube/token.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace gleaner::kube {
namespace {

class TokenTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = absl::StrCat(testing::TempDir(), "/tokenXXXXXX");
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    path_ = absl::StrCat(folder_, "/token");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  // Replaces the file by a new one, as the kubelet does.
  void replace(const std::string& text) const {
    const std::string next = absl::StrCat(folder_, "/next");
    std::ofstream(next) << text;
    std::filesystem::rename(next, path_);
  }

  std::string folder_;
  std::string path_;
};

TEST_F(TokenTest, FollowsTheFile) {
  TokenSource source("", path_);
  EXPECT_TRUE(absl::IsNotFound(source.get().status()));
  replace("one\n");
  EXPECT_EQ(*source.get(), "one");
  replace("two\n");
  EXPECT_EQ(*source.get(), "two");
}

TEST_F(TokenTest, KeepsTheLastTokenWhileTheFileIsMissingOrEmpty) {
  TokenSource source("", path_);
  replace("one");
  EXPECT_EQ(*source.get(), "one");
  std::filesystem::remove(path_);
  EXPECT_EQ(*source.get(), "one");
  replace("");
  EXPECT_EQ(*source.get(), "one");
  replace("two");
  EXPECT_EQ(*source.get(), "two");
}

TEST_F(TokenTest, IsTheFixedTokenWithoutAFile) { EXPECT_EQ(*TokenSource("fixed", "").get(), "fixed"); }

}  // namespace
}  // namespace gleaner::kube
