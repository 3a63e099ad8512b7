#include "cli/launcher/line_writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "absl/strings/str_cat.h"

namespace gleaner::launcher {
namespace {

class LineWriterTest : public testing::Test {
 protected:
  LineWriterTest() {
    ::fcntl(pipe_[1], F_SETPIPE_SZ, 1 << 20);
    ::fcntl(pipe_[0], F_SETFL, O_NONBLOCK);
  }
  ~LineWriterTest() override {
    ::close(pipe_[0]);
    ::close(pipe_[1]);
  }
  int opened() {
    EXPECT_EQ(::pipe(pipe_), 0);
    return pipe_[1];
  }
  std::string written() {
    std::string text(1 << 20, '\0');
    const ssize_t got = ::read(pipe_[0], text.data(), text.size());
    text.resize(got < 0 ? 0 : static_cast<size_t>(got));
    return text;
  }
  int pipe_[2];
  OutputStream stream_{opened()};
  absl::Duration now_;
};

TEST_F(LineWriterTest, PutsThePrefixBeforeEachWholeLine) {
  LineWriter writer(&stream_, "[a] ");
  writer.write("one\ntwo\nthr", now_);
  EXPECT_EQ(written(), "[a] one\n[a] two\n");
  writer.write("ee\n\n", now_);
  EXPECT_EQ(written(), "[a] three\n[a] \n");
  writer.flush();
  EXPECT_EQ(written(), "");
  writer.write("end", now_);
  writer.flush();
  EXPECT_EQ(written(), "[a] end\n");
}

TEST_F(LineWriterTest, CutsLinesThatNeverEnd) {
  LineWriter writer(&stream_, "[a] ");
  const std::string piece(LineWriter::kLongestLine, 'x');
  writer.write(piece, now_);
  EXPECT_EQ(written(), absl::StrCat("[a] ", piece, "\n"));
}

TEST_F(LineWriterTest, ACarriageReturnEndsALine) {
  LineWriter writer(&stream_, "[a] ");
  writer.write("one\rtwo\rthree", now_);
  EXPECT_EQ(written(), "[a] one\r[a] two\r");
  writer.write("\n", now_);
  EXPECT_EQ(written(), "[a] three\n");
  writer.write("dos\r", now_);
  EXPECT_EQ(written(), "") << "a line feed may follow the carriage return";
  writer.write("\nunix\r\n", now_);
  EXPECT_EQ(written(), "[a] dos\r\n[a] unix\r\n");
}

// Progress bars with the carriage return before the text (tqdm), and after it.
TEST_F(LineWriterTest, AProgressBarIsShownSoon) {
  LineWriter writer(&stream_, "[a] ");
  for (const char* bar : {"\r 10%", " 20%\r"}) {
    writer.write(bar, now_);
    now_ += LineWriter::kProgressDelay / 2;
    EXPECT_FALSE(writer.has_progress(now_));
    now_ += LineWriter::kProgressDelay / 2;
    EXPECT_TRUE(writer.has_progress(now_));
    writer.show_progress(now_);
    EXPECT_EQ(written(), absl::StrCat("[a]  ", bar[0] == '\r' ? "10" : "20", "%\r"));
    EXPECT_FALSE(writer.has_progress(now_ + LineWriter::kProgressDelay));
  }
  writer.write("\n", now_);
  EXPECT_EQ(written(), "[a] \n");
  writer.write("a line in ", now_);
  now_ += absl::Hours(1);
  EXPECT_FALSE(writer.has_progress(now_));
  writer.write("two pieces\n", now_);
  EXPECT_EQ(written(), "[a] a line in two pieces\n");
}

TEST_F(LineWriterTest, ReportsErrorsOfTheStream) {
  OutputStream full(open("/dev/full", O_WRONLY));
  LineWriter writer(&full, "");
  writer.write("x\n", now_);
  EXPECT_EQ(full.error(), ENOSPC);
}

}  // namespace
}  // namespace gleaner::launcher
