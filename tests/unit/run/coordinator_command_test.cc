// Tests of `gleaner coordinator` as users run it.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include "common/base/utf8.h"
#include "tests/http_get.h"
#include "tests/loopback6.h"
#include "tests/paths.h"
#include "tests/unit/run/program.h"

namespace gleaner {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

std::vector<std::string> coordinator(const std::string& listen, const std::string& token_file,
                                     std::vector<std::string> more = {"--workers", "1"}) {
  more.insert(more.begin(), {kGleaner, "coordinator", "--listen", listen, "--token-file", token_file});
  return more;
}

std::string await_address(const Program& program) {
  constexpr absl::string_view kStart = "listening on ";
  EXPECT_TRUE(eventually([&] { return program.output().find('\n') != std::string::npos; })) << program.errors();
  const std::string line = program.output();
  EXPECT_THAT(line, StartsWith(std::string(kStart)));
  return line.substr(kStart.size(), line.find('\n') - kStart.size());
}

TEST(CoordinatorCommand, MakesATokenFileReadableOnlyByItsOwner) {
  const Scratch scratch;
  const std::string token_file = scratch / "token";
  Program program(coordinator("127.0.0.1:0", token_file));
  await_address(program);
  struct stat status {};
  ASSERT_EQ(::stat(token_file.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  const std::string token = contents(token_file);
  EXPECT_EQ(token.size(), 65u);
  Program second(coordinator("127.0.0.1:0", token_file));
  await_address(second);
  EXPECT_EQ(contents(token_file), token) << "an existing token file is used";
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(scratch.path()), {}), 1) << "no other file is left";
}

TEST(CoordinatorCommand, EndsWithTheJob) {
  const Scratch scratch;
  const std::string token_file = scratch / "token", summary = scratch / "summary";
  Program program(coordinator("127.0.0.1:0", token_file, {"--workers", "1", "--summers", "1", "--summary", summary}));
  const std::string address = await_address(program);
  Program summer(
      {bin_dir() + "/gleaner-summer", "--coordinator", address, "--listen", "127.0.0.1:0", "--token-file", token_file});
  const Ended worker = run_to_end({"/usr/bin/env", "GLEANER_COORDINATOR=" + address, "GLEANER_WORKER=0",
                                   "GLEANER_TOKEN_FILE=" + token_file, kGleaner, "bench", "push-pull", "--bytes",
                                   "64KiB", "--steps", "2", "--dtype", "fp32", "--json"});
  EXPECT_EQ(worker.status, 0) << worker.errors;
  EXPECT_EQ(summer.wait(), 0) << summer.errors();
  EXPECT_EQ(program.wait(), 0) << program.errors();
  EXPECT_THAT(contents(summary), HasSubstr("\"succeeded\": true"));
}

TEST(CoordinatorCommand, NamesMissingMembers) {
  const Scratch scratch;
  const Ended ended =
      run_to_end(coordinator("127.0.0.1:0", scratch / "token",
                             {"--workers", "2", "--summers", "1", "--local-ranks", "2", "--start-timeout", "0.3"}));
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.errors, HasSubstr("worker 0 (local rank 0), worker 0 (local rank 1), worker 1 (local rank 0), "
                                      "worker 1 (local rank 1), summer 0 did not join within 300ms"));
}

TEST(CoordinatorCommand, PortInUse) {
  const Scratch scratch;
  Program program(coordinator("127.0.0.1:0", scratch / "token"));
  const std::string address = await_address(program);
  const Ended ended = run_to_end(coordinator(address, scratch / "token"));
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.errors, AllOf(HasSubstr(address), HasSubstr("in use")));
}

// Returns the coordinator's metrics page, which is at the address in the coordinator's log.
std::string metrics_page(const Program& program) {
  constexpr absl::string_view kBefore = "address=";
  EXPECT_TRUE(eventually([&] { return program.errors().find("serving metrics") != std::string::npos; }));
  const std::string log = program.errors();
  const size_t begin = log.find(std::string(kBefore), log.find("serving metrics")) + kBefore.size();
  const auto address = Address::parse(log.substr(begin, log.find_first_of(" \n", begin) - begin));
  EXPECT_TRUE(address.ok()) << address.status() << log;
  return address.ok() ? http_get(*address, "/metrics") : "";
}

TEST(CoordinatorCommand, ServesMembersAndMetricsOnIPv6) {
  SKIP_WITHOUT_LOOPBACK6();
  const Scratch scratch;
  const std::string token_file = scratch / "token";
  Program program(coordinator("[::1]:0", token_file,
                              {"--workers", "1", "--summers", "1", "--metrics", "[::1]:0", "--job", "caf\xc3\xa9"}));
  const std::string address = await_address(program);
  EXPECT_THAT(address, StartsWith("[::1]:"));
  const std::string page = metrics_page(program);
  EXPECT_THAT(page, HasSubstr("gleaner_coordinator_expected_ranks{job_name=\"caf\xc3\xa9\"} 1"));
  EXPECT_TRUE(is_utf8(page));
  Program summer({bin_dir() + "/gleaner-summer", "--coordinator", address, "--listen", "[::1]:0", "--metrics",
                  "[::1]:0", "--job", "caf\xc3\xa9", "--token-file", token_file});
  const Ended worker = run_to_end({"/usr/bin/env", "GLEANER_COORDINATOR=" + address, "GLEANER_ADDRESS=[::1]:0",
                                   "GLEANER_METRICS=[::1]:0", "GLEANER_WORKER=0", "GLEANER_JOB=caf\xc3\xa9",
                                   "GLEANER_TOKEN_FILE=" + token_file, kGleaner, "bench", "push-pull", "--bytes",
                                   "64KiB", "--steps", "2", "--dtype", "fp32", "--json"});
  EXPECT_EQ(worker.status, 0) << worker.errors;
  EXPECT_EQ(summer.wait(), 0) << summer.errors();
  EXPECT_EQ(program.wait(), 0) << program.errors();
}

TEST(CoordinatorCommand, MetricsPortInUse) {
  const Scratch scratch;
  for (const std::string host : {"127.0.0.1", "[::1]"}) {
    if (host == "[::1]" && !has_loopback6()) GTEST_SKIP() << "this machine has no IPv6 loopback: can't bind ::1";
    Program program(coordinator(host + ":0", scratch / "token"));
    const std::string address = await_address(program);
    const Ended ended =
        run_to_end(coordinator(host + ":0", scratch / "token", {"--workers", "1", "--metrics", address}));
    EXPECT_EQ(ended.status, 1);
    EXPECT_THAT(ended.errors, AllOf(HasSubstr(address), HasSubstr("the port is in use; choose another")));
  }
}

TEST(CoordinatorCommand, SignalsEndTheCoordinatorCleanly) {
  const Scratch scratch;
  for (const int signal : {SIGTERM, SIGINT}) {
    Program program(coordinator("127.0.0.1:0", scratch / "token"));
    await_address(program);
    program.signal(signal);
    EXPECT_EQ(program.wait(), 128 + signal);
  }
}

TEST(CoordinatorCommand, WrongCommandLines) {
  const Scratch scratch;
  const std::string token = scratch / "token";
  EXPECT_EQ(run_to_end(coordinator("127.0.0.1", token)).status, 2);
  EXPECT_EQ(run_to_end(coordinator("127.0.0.1:70000", token)).status, 2);
  EXPECT_EQ(run_to_end(coordinator("127.0.0.1:0", token, {"--workers", "0"})).status, 2);
  EXPECT_EQ(run_to_end(coordinator("127.0.0.1:0", token, {"--workers", "65536", "--summers", "1"})).status, 2);
  EXPECT_EQ(run_to_end(coordinator("127.0.0.1:0", token, {"--workers", "1", "--bandwidth", "-1Gbit"})).status, 2);
  const Ended ended = run_to_end(coordinator("127.0.0.1:0", "/no/such/directory/token"));
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.errors, HasSubstr("/no/such/directory/token': No such file or directory"));
  std::ofstream(token) << "\n";
  EXPECT_THAT(run_to_end(coordinator("127.0.0.1:0", token)).errors, HasSubstr("empty"));
}

}  // namespace
}  // namespace gleaner
