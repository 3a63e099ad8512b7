#include "cli/launcher/line_writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace gleaner::launcher {
namespace {

class LineWriterTest : public testing::Test {
 protected:
  LineWriterTest() {
    EXPECT_EQ(::pipe(pipe_), 0);
    ::fcntl(pipe_[1], F_SETPIPE_SZ, 1 << 20);
    ::fcntl(pipe_[0], F_SETFL, O_NONBLOCK);
  }
  ~LineWriterTest() override {
    ::close(pipe_[0]);
    ::close(pipe_[1]);
  }
  std::string written() {
    std::string text(1 << 20, '\0');
    const ssize_t got = ::read(pipe_[0], text.data(), text.size());
    text.resize(got < 0 ? 0 : static_cast<size_t>(got));
    return text;
  }
  int pipe_[2];
};

TEST_F(LineWriterTest, PutsThePrefixBeforeEachWholeLine) {
  LineWriter writer(pipe_[1], "[a] ");
  EXPECT_TRUE(writer.write("one\ntwo\nthr"));
  EXPECT_EQ(written(), "[a] one\n[a] two\n");
  EXPECT_TRUE(writer.write("ee\n\n"));
  EXPECT_EQ(written(), "[a] three\n[a] \n");
  EXPECT_TRUE(writer.flush());
  EXPECT_EQ(written(), "");
  EXPECT_TRUE(writer.write("end"));
  EXPECT_TRUE(writer.flush());
  EXPECT_EQ(written(), "[a] end\n");
}

TEST_F(LineWriterTest, CutsLinesThatNeverEnd) {
  LineWriter writer(pipe_[1], "[a] ");
  const std::string piece(LineWriter::kLongestLine, 'x');
  EXPECT_TRUE(writer.write(piece));
  EXPECT_EQ(written(), absl::StrCat("[a] ", piece, "\n"));
}

TEST_F(LineWriterTest, SaysWhenNobodyReads) {
  LineWriter writer(open("/dev/full", O_WRONLY), "");
  EXPECT_FALSE(writer.write("x\n"));
}

}  // namespace
}  // namespace gleaner::launcher
