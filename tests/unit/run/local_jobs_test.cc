// Tests how the jobs of `gleaner run` on a machine are recorded, found and chosen.
#include "cli/launcher/local_jobs.h"

#include <gmock/gmock.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/launcher/user_environment.h"
#include "tests/unit/run/program.h"

namespace gleaner::launcher {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr uid_t kNobody = 65534;

LocalJob job_of(int64_t pid, const std::string& name = "default") {
  return {.process = {.pid = pid, .start = 7, .pid_namespace = "pid:[1]"},
          .job = name,
          .coordinator = "127.0.0.1:4000",
          .token_file = "/proc/5/fd/3",
          .workers = 2,
          .summers = 1,
          .start = absl::FromUnixSeconds(1'800'000'000),
          .command = {"python3", "train.py"}};
}

std::vector<int64_t> pids(const std::vector<LocalJob>& jobs) {
  std::vector<int64_t> found;
  for (const LocalJob& job : jobs) found.push_back(job.process.pid);
  return found;
}

TEST(LocalJob, TextIsReadBack) {
  LocalJob job = job_of(42);
  job.command = {"sh", "-c", "echo \"a\"\nexit", ""};
  const auto read = parse_local_job(to_json(job).dump());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(to_json(*read), to_json(job));
  EXPECT_EQ(read->start, job.start);
  EXPECT_EQ(read->command, job.command);
}

TEST(LocalJob, OtherTextIsRefused) {
  nlohmann::ordered_json other = to_json(job_of(42));
  other["version"] = 2;
  nlohmann::ordered_json lacking = to_json(job_of(42));
  lacking.erase("token_file");
  for (const std::string& text : {std::string(), std::string("{"), std::string("[1]"), other.dump(), lacking.dump()}) {
    EXPECT_TRUE(absl::IsInvalidArgument(parse_local_job(text).status())) << text;
  }
}

TEST(LocalJob, IsChosenByProcessAndName) {
  const std::vector<LocalJob> jobs = {job_of(42), job_of(43, "digits"), job_of(44)};
  EXPECT_EQ(choose_local_job(jobs, 44, "")->process.pid, 44);
  EXPECT_EQ(choose_local_job(jobs, 0, "digits")->process.pid, 43);
  EXPECT_EQ(choose_local_job({job_of(42)}, 0, "")->process.pid, 42);
  const absl::Status several = choose_local_job(jobs, 0, "default").status();
  EXPECT_TRUE(absl::IsInvalidArgument(several));
  EXPECT_THAT(several.message(), AllOf(HasSubstr("2 jobs"), HasSubstr("42  default"), HasSubstr("44  default"),
                                       HasSubstr("python3 train.py"), HasSubstr("--pid 42")));
  EXPECT_TRUE(absl::IsNotFound(choose_local_job({}, 0, "").status()));
  const absl::Status other = choose_local_job(jobs, 42, "digits").status();
  EXPECT_TRUE(absl::IsNotFound(other));
  EXPECT_THAT(other.message(), HasSubstr("43  digits"));
}

TEST(LocalJob, TableHasALineForEachJob) {
  LocalJob job = job_of(42);
  job.command = {"sh", "-c", "echo\n\x1b[31mexit"};
  const std::string table = local_jobs_table({job, job_of(43)});
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 3) << table;
  EXPECT_EQ(table.find('\x1b'), std::string::npos);
}

TEST(LocalJobs, HaveRunningProcesses) {
  const Scratch scratch;
  const LocalJobs jobs({scratch / "runtime"});
  EXPECT_THAT(jobs.list(), IsEmpty());
  Program ended({"/bin/sleep", "1000"}), running({"/bin/sleep", "1000"});
  LocalJob gone = job_of(ended.pid());
  gone.process = *identify(ended.pid());
  ended.signal(SIGKILL);
  ended.wait();
  LocalJob there = job_of(running.pid());
  there.process = *identify(running.pid());
  LocalJob earlier = job_of(::getppid());  // another process had this number
  earlier.process = *identify(::getppid());
  --earlier.process.start;
  LocalJob elsewhere = job_of(1'000'000'000);
  elsewhere.process.pid_namespace = "pid:[1]";
  const auto has_file = [&](const LocalJob& job) {
    return std::filesystem::exists(scratch / absl::StrCat("runtime/", job.process.pid, ".json"));
  };
  for (const LocalJob& job : {gone, elsewhere, there, earlier}) ASSERT_TRUE(jobs.add(job).ok());
  EXPECT_FALSE(has_file(gone)) << "a later job reaps it";
  ASSERT_TRUE(jobs.add(gone).ok());
  std::ofstream(scratch / "runtime/9.json") << "no job";
  EXPECT_THAT(pids(jobs.list()), testing::ElementsAre(running.pid()));
  EXPECT_TRUE(has_file(there));
  EXPECT_FALSE(has_file(gone)) << "its process has ended";
  EXPECT_FALSE(has_file(earlier)) << "its process has ended, and another one has its number";
  EXPECT_TRUE(has_file(elsewhere)) << "its process can't be seen from here";
  jobs.remove(running.pid());
  EXPECT_THAT(jobs.list(), IsEmpty());
}

TEST(LocalJobs, AreFoundInAllFolders) {
  const Scratch scratch;
  const std::string first = scratch / "first", second = scratch / "second";
  Program running({"/bin/sleep", "1000"});
  LocalJob job = job_of(running.pid()), own = job_of(::getpid());
  job.process = *identify(running.pid());
  own.process = *identify(::getpid());
  const LocalJobs both({first, second});
  EXPECT_THAT(both.list(), IsEmpty());
  both.remove(::getpid());
  EXPECT_FALSE(std::filesystem::exists(first) || std::filesystem::exists(second)) << "readers make no folders";
  ASSERT_TRUE(LocalJobs({second}).add(job).ok());
  ASSERT_TRUE(both.add(own).ok());
  EXPECT_THAT(pids(LocalJobs({first}).list()), testing::ElementsAre(::getpid()));
  EXPECT_THAT(pids(both.list()), testing::UnorderedElementsAre(running.pid(), ::getpid()));
  both.remove(running.pid());
  EXPECT_THAT(pids(both.list()), testing::ElementsAre(::getpid()));
}

TEST(UserEnvironment, RuntimeFoldersAreThoseOfAllShells) {
  const std::string uid = absl::StrCat(::geteuid()), tmp = "/tmp/gleaner-" + uid, usual = "/run/user/" + uid;
  const char* const before = std::getenv("XDG_RUNTIME_DIR");
  const std::string saved = before == nullptr ? "" : before;
  const auto folders = [](const std::string& variable) {
    ::setenv("XDG_RUNTIME_DIR", variable.c_str(), 1);
    return user_environment().runtime_folders;
  };
  EXPECT_THAT(folders("/elsewhere"), testing::ElementsAre("/elsewhere/gleaner", tmp, usual + "/gleaner"));
  EXPECT_THAT(folders(usual), testing::ElementsAre(usual + "/gleaner", tmp));
  EXPECT_THAT(folders("relative"), testing::ElementsAre(tmp, usual + "/gleaner"));
  folders(saved);
}

TEST(LocalJobs, AreKeptIfTheirProcessCannotBeInspected) {
  const Scratch scratch;
  const std::string folder = scratch / "runtime";
  const bool is_root = ::geteuid() == 0;  // it may inspect all processes
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t hidden = ::fork();
  if (hidden == 0) {
    const bool done = ::prctl(PR_SET_DUMPABLE, 0) == 0 && ::write(ready[1], "", 1) == 1;
    while (done) ::pause();
    ::_exit(1);
  }
  char byte = 0;
  EXPECT_EQ(::read(ready[0], &byte, 1), 1);
  LocalJob job = job_of(hidden);
  job.process = *identify(::getpid());
  job.process.pid = hidden;
  ASSERT_TRUE(LocalJobs({folder}).add(job).ok());
  if (is_root) {
    ASSERT_EQ(::chmod(scratch.path().c_str(), 0755), 0);
    ASSERT_EQ(::chown(folder.c_str(), kNobody, kNobody), 0);
    ASSERT_EQ(::seteuid(kNobody), 0);
  }
  const absl::Status status = identify(hidden).status();
  LocalJobs({folder}).list();
  ASSERT_EQ(::seteuid(::getuid()), 0);
  EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
  EXPECT_TRUE(std::filesystem::exists(absl::StrCat(folder, "/", hidden, ".json")));
  ::kill(hidden, SIGKILL);
  ::waitpid(hidden, nullptr, 0);
  for (const int end : ready) ::close(end);
}

TEST(LocalJobs, UnfinishedFilesOfEndedProcessesAreRemoved) {
  const Scratch scratch;
  const std::string folder = scratch / "runtime";
  LocalJob own = job_of(::getpid());
  own.process = *identify(::getpid());
  const LocalJobs jobs({folder});
  ASSERT_TRUE(jobs.add(own).ok());
  const auto unfinished = [&](int64_t pid, const std::string& pid_namespace) {
    const std::string path = absl::StrCat(folder, "/", pid, ".", pid_namespace, ".tmp");
    std::ofstream(path) << "{";
    return path;
  };
  const std::string ended = unfinished(1'000'000'000, own.process.pid_namespace);
  const std::string running = unfinished(::getpid(), own.process.pid_namespace);
  const std::string elsewhere = unfinished(1'000'000'000, "pid:[1]");
  EXPECT_THAT(pids(jobs.list()), testing::ElementsAre(::getpid()));
  EXPECT_FALSE(std::filesystem::exists(ended));
  EXPECT_TRUE(std::filesystem::exists(running));
  EXPECT_TRUE(std::filesystem::exists(elsewhere)) << "its process can't be seen from here";
}

TEST(LocalJobs, AreInPrivateFolders) {
  const Scratch scratch;
  const std::string open = scratch / "open", link = scratch / "link", mine = scratch / "mine";
  ASSERT_EQ(::mkdir(open.c_str(), 0700), 0);
  ASSERT_EQ(::chmod(open.c_str(), 0777), 0);
  std::filesystem::create_directory_symlink(open, link);
  LocalJob job = job_of(::getpid());
  job.process = *identify(::getpid());
  EXPECT_FALSE(LocalJobs({open, link, scratch / "missing/folder"}).add(job).ok());
  EXPECT_TRUE(std::filesystem::is_empty(open));
  ASSERT_TRUE(LocalJobs({open, link, mine}).add(job).ok());
  struct stat info {};
  ASSERT_EQ(::stat(mine.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  EXPECT_THAT(pids(LocalJobs({open, link, mine}).list()), testing::ElementsAre(::getpid()));
  std::filesystem::copy(mine, open, std::filesystem::copy_options::recursive);
  EXPECT_THAT(LocalJobs({open, link}).list(), IsEmpty()) << "others may have made the files in these";
}

}  // namespace
}  // namespace gleaner::launcher
