#include "cli/launcher/progress_line.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace gleaner::launcher {
namespace {

class ProgressLineTest : public testing::Test {
 protected:
  ProgressLineTest() {
    EXPECT_EQ(::pipe(pipe_), 0);
    ::fcntl(pipe_[0], F_SETFL, O_NONBLOCK);
  }
  ~ProgressLineTest() override {
    ::close(pipe_[0]);
    ::close(pipe_[1]);
  }
  ProgressLine line(unsigned columns) {
    return {pipe_[1], columns, [this](absl::Duration) { return text_; }};
  }
  std::string written() {
    std::string text(1 << 16, '\0');
    const ssize_t got = ::read(pipe_[0], text.data(), text.size());
    text.resize(got < 0 ? 0 : static_cast<size_t>(got));
    return text;
  }

  std::string text_;
  int pipe_[2];
};

TEST_F(ProgressLineTest, IsKeptUpToDateOnATerminal) {
  ProgressLine line = this->line(20);
  text_ = "step 1";
  line.update(absl::Seconds(100));
  EXPECT_EQ(written(), "") << "no line is printed at once";
  line.update(absl::Seconds(101));
  EXPECT_EQ(written(), "\r\x1b[Kstep 1\r");
  line.update(absl::Seconds(101.5));
  EXPECT_EQ(written(), "");
  text_ = "step 2, a line that is too long";
  line.update(absl::Seconds(102));
  EXPECT_EQ(written(), "\r\x1b[Kstep 2, a line that\r") << "the line must not wrap";
  line.hide();
  EXPECT_EQ(written(), "\r\x1b[K");
  line.hide();
  EXPECT_EQ(written(), "") << "the line was removed before";
}

TEST_F(ProgressLineTest, IsALineEachMinuteElsewhere) {
  ProgressLine line = this->line(0);
  for (int second = 0; second < 60; ++second) line.update(absl::Seconds(second));
  EXPECT_EQ(written(), "");
  for (int second = 60; second < 65; ++second) line.update(absl::Seconds(second));
  EXPECT_EQ(written(), "") << "there are no figures";
  text_ = "step 1";
  for (int second = 65; second < 120; ++second) line.update(absl::Seconds(second));
  EXPECT_EQ(written(), "step 1\n");
  for (int second = 120; second < 180; ++second) line.update(absl::Seconds(second));
  EXPECT_EQ(written(), "step 1\n");
  line.hide();
  EXPECT_EQ(written(), "");
}

}  // namespace
}  // namespace gleaner::launcher
