#include "common/base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "tests/unit/run/program.h"

namespace gleaner {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr uid_t kNobody = 65534;

size_t files_in(const std::string& folder) {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

mode_t mode_of(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? info.st_mode & 0777 : 0;
}

// Limits the size of the files that this process writes, so that a write fails after a part, as on a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limited = {bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limited);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }

 private:
  sighandler_t handler_;
  rlimit before_{};
};

TEST(ReplaceFile, WritesAllOrNothing) {
  const Scratch scratch;
  const std::string path = scratch / "file";
  ASSERT_EQ(replace_file(path, "old", "the summary"), absl::OkStatus());
  const std::string longer(10'000, 'x');
  {
    const FileSizeLimit limit(4096);
    const absl::Status status = replace_file(path, longer, "the summary");
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_EQ(status.message(), "can't write the summary '" + path + "': File too large");
  }
  EXPECT_EQ(contents(path), "old");
  EXPECT_EQ(files_in(scratch.path()), 1u) << "no temporary file is left";
  ASSERT_EQ(replace_file(path, longer, "the summary"), absl::OkStatus());
  EXPECT_EQ(contents(path), longer);
  EXPECT_EQ(files_in(scratch.path()), 1u);
}

TEST(ReplaceFile, NamesReadOnlyFolder) {
  const Scratch scratch;
  const std::string path = scratch / "file";
  ASSERT_EQ(replace_file(path, "old", "the key"), absl::OkStatus());
  ASSERT_EQ(::chmod(scratch.path().c_str(), 0555), 0);
  const bool is_root = ::geteuid() == 0;  // it may write to all folders
  ASSERT_EQ(::seteuid(is_root ? kNobody : ::geteuid()), 0);
  const absl::Status status = replace_file(path, "new", "the key");
  ASSERT_EQ(::seteuid(::getuid()), 0);
  ASSERT_EQ(::chmod(scratch.path().c_str(), 0755), 0);
  EXPECT_EQ(status.message(), "can't write the key '" + path + "': Permission denied");
  EXPECT_EQ(contents(path), "old");
  EXPECT_EQ(files_in(scratch.path()), 1u);
}

TEST(ReplaceFile, NamesMissingFolderAndDirectory) {
  const Scratch scratch;
  EXPECT_THAT(std::string(replace_file(scratch / "no/file", "text", "the plot").message()),
              AllOf(HasSubstr("no/file"), HasSubstr("No such file")));
  EXPECT_THAT(std::string(replace_file(scratch.path(), "text", "the plot").message()), HasSubstr("Is a directory"));
  EXPECT_EQ(files_in(scratch.path()), 0u);
}

TEST(ReplaceFile, GivesModeWhateverWasThere) {
  const Scratch scratch;
  const std::string path = scratch / "key", temporary = scratch / "next";
  ASSERT_EQ(replace_file(path, "public", "the key"), absl::OkStatus());
  ASSERT_EQ(replace_file(temporary, "of a process that was killed", "the key"), absl::OkStatus());
  ASSERT_EQ(replace_file(path, "secret", "the key", {.mode = 0600, .temporary = temporary}), absl::OkStatus());
  EXPECT_EQ(mode_of(path), 0600u);
  EXPECT_EQ(contents(path), "secret");
  EXPECT_EQ(files_in(scratch.path()), 1u);
}

TEST(ReplaceFile, WritesThroughLinksAndDevices) {
  const Scratch scratch;
  const std::string path = scratch / "file", link = scratch / "link";
  std::filesystem::create_symlink(path, link);
  ASSERT_EQ(replace_file(link, "text", "the summary"), absl::OkStatus());
  EXPECT_TRUE(std::filesystem::is_symlink(link)) << "/dev/stdout is a link, and must stay one";
  EXPECT_EQ(contents(path), "text");
  EXPECT_EQ(replace_file("/dev/null", "text", "the summary"), absl::OkStatus());
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  EXPECT_EQ(replace_file("/dev/full", "text", "the summary").message(),
            "can't write the summary '/dev/full': No space left on device");
}

}  // namespace
}  // namespace gleaner
