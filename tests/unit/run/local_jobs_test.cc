// Tests how the jobs of `gleaner run` on a machine are recorded, found and chosen.
#include "cli/launcher/local_jobs.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/unit/run/program.h"

namespace gleaner::launcher {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

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
