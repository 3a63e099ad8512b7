// Tests of `gleaner run` as users run it, with real processes.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/loopback6.h"
#include "tests/unit/run/program.h"

namespace gleaner {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Ended run(std::vector<std::string> flags, std::vector<std::string> command) {
  std::vector<std::string> arguments = {kGleaner, "run"};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  arguments.push_back("--");
  arguments.insert(arguments.end(), command.begin(), command.end());
  return run_to_end(std::move(arguments));
}

Ended run_shell(std::vector<std::string> flags, const std::string& script) {
  return run(std::move(flags), {"sh", "-c", script});
}

// A unique word in the command lines of processes. The test finds the processes by this word.
class Marker {
 public:
  Marker() : word_(absl::StrCat("gleanermark", ::getpid(), "x", absl::ToUnixNanos(absl::Now()))) {}
  const std::string& word() const { return word_; }
  // Returns a shell command that lasts: sleep, with the word as its name.
  std::string sleep() const { return absl::StrCat("exec -a ", word_, " sleep 1000"); }
  int alive() const {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const std::string line = contents(entry.path().string() + "/cmdline");
      if (line.rfind(word_, 0) == 0) ++count;
    }
    return count;
  }

 private:
  std::string word_;
};

std::vector<std::string> bash_run(std::vector<std::string> flags, const std::string& script) {
  std::vector<std::string> arguments = {kGleaner, "run"};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  for (const char* word : {"--", "bash", "-c"}) arguments.push_back(word);
  arguments.push_back(script);
  return arguments;
}

TEST(Run, GivesEachRankItsIdentity) {
  const Ended ended = run_shell({"--workers", "2", "--local-ranks", "2", "--job", "digits"},
                                "echo $GLEANER_WORKER/$GLEANER_LOCAL_RANK/$GLEANER_LOCAL_SIZE $GLEANER_JOB "
                                "$GLEANER_ADDRESS; test -s $GLEANER_TOKEN_FILE && echo $GLEANER_COORDINATOR >&2");
  EXPECT_EQ(ended.status, 0) << ended.errors;
  for (const char* rank : {"0.0] 0/0", "0.1] 0/1", "1.0] 1/0", "1.1] 1/1"}) {
    EXPECT_THAT(ended.output, HasSubstr(absl::StrCat("[worker ", rank, "/2 digits 127.0.0.1:0\n")));
    EXPECT_THAT(ended.errors, HasSubstr("] 127.0.0.1:"));
  }
}

// The variables are set as by torchrun.
TEST(Run, SetsTheVariablesOfTorchrun) {
  const char* const script =
      "echo $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $OMP_NUM_THREADS; test \"$MASTER_PORT\" -gt 0 && echo at "
      "$MASTER_ADDR";
  ::setenv("RANK", "77", 1);  // of another job, inside of which this one runs
  const Ended ended = run_shell({"--workers", "2", "--local-ranks", "2"}, script);
  ::unsetenv("RANK");
  for (const char* rank : {"0.0] 0/4 0/2 1\n", "0.1] 1/4 1/2 1\n", "1.0] 2/4 0/2 1\n", "1.1] 3/4 1/2 1\n"}) {
    EXPECT_THAT(ended.output, HasSubstr(rank)) << ended.errors;
  }
  EXPECT_THAT(ended.output, HasSubstr("] at 127.0.0.1\n"));
  EXPECT_THAT(ended.errors, HasSubstr("OMP_NUM_THREADS=1 for each process, since 4 share a machine"));
  EXPECT_THAT(run_shell({"--workers", "1"}, "echo \"<$OMP_NUM_THREADS>\"").output, HasSubstr("<>"));
  ::setenv("OMP_NUM_THREADS", "3", 1);
  ::setenv("MASTER_ADDR", "10.1.2.3", 1);
  ::setenv("MASTER_PORT", "4567", 1);
  const Ended chosen = run_shell({"--workers", "2"}, "echo $OMP_NUM_THREADS $MASTER_ADDR:$MASTER_PORT");
  for (const char* name : {"OMP_NUM_THREADS", "MASTER_ADDR", "MASTER_PORT"}) ::unsetenv(name);
  EXPECT_THAT(chosen.output, HasSubstr("] 3 10.1.2.3:4567\n"));
  EXPECT_THAT(chosen.errors, Not(HasSubstr("OMP_NUM_THREADS")));
  const Ended elastic = run_shell({"--workers", "2", "--min-workers", "1"}, "echo \"<$WORLD_SIZE> $LOCAL_WORLD_SIZE\"");
  EXPECT_THAT(elastic.output, HasSubstr("<> 1\n")) << "the number of workers changes in an elastic job";
}

TEST(Run, KeepsLinesWholeAndPrintsALastLineWithoutAnEnd) {
  const Ended ended =
      run_shell({"--workers", "3"}, "for i in $(seq 500); do printf 'some '; echo $i; done; printf 'the end'");
  ASSERT_EQ(ended.status, 0);
  std::istringstream lines(ended.output);
  int seen[3] = {};
  for (std::string line; std::getline(lines, line);) {
    ASSERT_THAT(line.substr(0, 8), "[worker ");
    int& count = seen[line[8] - '0'];
    ++count;
    EXPECT_EQ(line.substr(9), count <= 500 ? absl::StrCat("] some ", count) : "] the end");
  }
  EXPECT_THAT(seen, testing::ElementsAre(501, 501, 501));
}

TEST(Run, ForwardsOutputUnchangedOnRequest) {
  EXPECT_EQ(run({"--workers", "1", "--no-prefix"}, {"printf", "a\\nb"}).output, "a\nb\n");
}

TEST(Run, ReturnsTheFirstFailingStatusAndEndsOtherProcesses) {
  const Marker marker;
  Program program(bash_run({"--workers", "3"}, "if [ $GLEANER_WORKER = 1 ]; then exit 7; fi; " + marker.sleep()));
  EXPECT_EQ(program.wait(), 7);
  EXPECT_EQ(marker.alive(), 0);
  EXPECT_EQ(run_shell({"--workers", "2"}, "kill -SEGV $$").status, 128 + SIGSEGV);
}

TEST(Run, KillsProcessesThatIgnoreSigterm) {
  const Marker marker;
  Program program(bash_run({"--workers", "2", "--grace", "0.3"},
                           "if [ $GLEANER_WORKER = 1 ]; then exit 3; fi; trap '' TERM; " + marker.sleep()));
  EXPECT_EQ(program.wait(), 3);
  EXPECT_EQ(marker.alive(), 0);
}

TEST(Run, LeavesNoChildrenOfWorkersBehind) {
  const Marker marker;
  // Leaves a process in the worker's group, which keeps its output open, and one in a new session.
  const std::string script = absl::StrCat("(", marker.sleep(), ") & setsid bash -c '", marker.sleep(), "' & sleep 0.3");
  Program program(bash_run({"--workers", "2"}, script));
  EXPECT_EQ(program.wait(), 0);
  EXPECT_EQ(marker.alive(), 0);
}

TEST(Run, EndsLeftoverChildrenOfAWorkerWhileOthersRun) {
  const Marker left, lasting;
  Program program(bash_run({"--workers", "2"}, absl::StrCat("if [ $GLEANER_WORKER = 1 ]; then ", lasting.sleep(),
                                                            "; fi; (", left.sleep(), ") & sleep 0.3")));
  ASSERT_TRUE(eventually([&] { return left.alive() == 1; }));
  EXPECT_TRUE(eventually([&] { return left.alive() == 0; }));
  EXPECT_EQ(lasting.alive(), 1);
}

TEST(Run, NothingIsLeftWhenItIsKilled) {
  const Marker marker;
  const std::string sleep = marker.sleep();
  Program program(bash_run(
      {"--workers", "2", "--grace", "0.3", "--start-timeout", "1000"},
      absl::StrCat("echo $GLEANER_TOKEN_FILE; (", sleep, ") & setsid bash -c '", sleep, "' & trap '' TERM; ", sleep)));
  ASSERT_TRUE(eventually([&] { return marker.alive() == 6 && !program.output().empty(); }));
  const std::string line = program.output();
  const std::string token = line.substr(line.find('/'), line.find('\n') - line.find('/'));
  EXPECT_TRUE(std::filesystem::exists(token));
  program.signal(SIGKILL);
  EXPECT_EQ(program.wait(), 128 + SIGKILL);
  EXPECT_TRUE(eventually([&] { return marker.alive() == 0; })) << marker.alive() << " are left";
  EXPECT_TRUE(eventually([&] { return !std::filesystem::exists(token); })) << "the token is left";
}

TEST(Run, NothingIsLeftWhenItsChildIsKilled) {
  const Marker marker;
  Program program(bash_run({"--workers", "2"}, "(" + marker.sleep() + ") & " + marker.sleep()));
  ASSERT_TRUE(eventually([&] { return marker.alive() == 4; }));
  pid_t child = 0;
  std::ifstream(absl::StrCat("/proc/", program.pid(), "/task/", program.pid(), "/children")) >> child;
  ASSERT_GT(child, 0);
  ::kill(child, SIGKILL);
  EXPECT_EQ(program.wait(), 128 + SIGKILL);
  EXPECT_EQ(marker.alive(), 0);
}

TEST(Run, ForwardsSignals) {
  const Marker marker;
  Program program(bash_run({"--workers", "2"},
                           "trap 'echo saved; exit 0' TERM; echo ready; (" + marker.sleep() + ") & wait; wait"));
  ASSERT_TRUE(eventually([&] {
    return program.output().find("0] ready") != std::string::npos &&
           program.output().find("1] ready") != std::string::npos;
  }));
  program.signal(SIGTERM);
  EXPECT_EQ(program.wait(), 0) << "both workers succeeded";
  EXPECT_THAT(program.output(), AllOf(HasSubstr("[worker 0] saved"), HasSubstr("[worker 1] saved")));
  EXPECT_EQ(marker.alive(), 0);
}

TEST(Run, WorkersHaveTheUsualSignals) {
  const Ended ended =
      run({"--workers", "1", "--no-prefix"}, {"bash", "-c", "yes | head -n 1 >/dev/null; echo ${PIPESTATUS[0]}"});
  EXPECT_EQ(ended.output, absl::StrCat(128 + SIGPIPE, "\n"));
}

TEST(Run, SecondSignalKills) {
  const Marker marker;
  Program program(bash_run({"--workers", "2"},
                           "trap 'echo told' INT; (trap '' INT; " + marker.sleep() + ") & echo ready; wait; wait"));
  const auto both_say = [&](const std::string& word) {
    return eventually([&] {
      return program.output().find("0] " + word) != std::string::npos &&
             program.output().find("1] " + word) != std::string::npos;
    });
  };
  ASSERT_TRUE(both_say("ready") && eventually([&] { return marker.alive() == 2; }));
  program.signal(SIGINT);
  ASSERT_TRUE(both_say("told"));
  EXPECT_EQ(marker.alive(), 2);
  program.signal(SIGINT);
  EXPECT_EQ(program.wait(), 128 + SIGKILL);
  EXPECT_EQ(marker.alive(), 0);
}

TEST(Run, NamesAProgramThatCannotBeStarted) {
  Ended ended = run({"--workers", "2"}, {"no-such-command"});
  EXPECT_EQ(ended.status, 127);
  EXPECT_THAT(ended.errors, AllOf(HasSubstr("no-such-command"), HasSubstr("No such file")));
  ended = run({"--workers", "1"}, {"/etc/passwd"});
  EXPECT_EQ(ended.status, 126);
  EXPECT_THAT(ended.errors, HasSubstr("Permission denied"));
}

TEST(Run, WrongCommandLines) {
  const std::vector<std::vector<std::string>> wrong = {{"--workers", "0", "--", "true"},
                                                       {"--workers", "two", "--", "true"},
                                                       {"--workers", "1", "--summers", "-1", "--", "true"},
                                                       {"--workers", "1", "--local-ranks", "0", "--", "true"},
                                                       {"--workers", "1", "--no-such-flag", "--", "true"},
                                                       {"--workers", "1", "--bandwidth", "fast", "--", "true"},
                                                       {"--workers", "2", "--worker-bandwidths", "1Gbit", "--", "true"},
                                                       {"--workers", "1", "--partition-bytes", "5GiB", "--", "true"},
                                                       {"--workers", "1", "--log-level", "loud", "--", "true"},
                                                       {"--workers", "1"},
                                                       {"--", "true"}};
  for (std::vector<std::string> flags : wrong) {
    flags.insert(flags.begin(), {kGleaner, "run"});
    const Ended ended = run_to_end(flags);
    EXPECT_EQ(ended.status, 2) << testing::PrintToString(flags);
    EXPECT_THAT(ended.errors, Not(IsEmpty()));
  }
}

TEST(Run, UnknownFlagsAndCommandsAreNamed) {
  EXPECT_THAT(run({"--worker", "2"}, {"true"}).errors,
              AllOf(HasSubstr("gleaner run: unknown flag '--worker'"), HasSubstr("did you mean '--workers'?")));
  const Ended command = run_to_end({kGleaner, "coodinator", "--workers", "2"});
  EXPECT_EQ(command.status, 2);
  EXPECT_THAT(command.errors,
              AllOf(HasSubstr("unknown command 'coodinator'"), HasSubstr("did you mean 'coordinator'?")));
  EXPECT_THAT(run_to_end({bin_dir() + "/gleaner-summer", "--cordinator", "x"}).errors,
              AllOf(HasSubstr("unknown flag '--cordinator'"), HasSubstr("'--coordinator'?")));
}

TEST(Run, TheCommandMayHaveTheNameOfASubcommand) {
  const Ended ended = run({"--workers", "1", "--no-prefix"}, {"echo", "plan", "run", "--workers", "x"});
  EXPECT_EQ(ended.output, "plan run --workers x\n") << ended.errors;
}

TEST(Run, AFileThatIsADirectoryIsNamed) {
  const Scratch scratch;
  const std::string& path = scratch.path();
  const std::vector<std::vector<std::string>> wrong = {
      {kGleaner, "run", "--workers", "1", "--token-file", path, "--", "true"},
      {kGleaner, "run", "--workers", "1", "--hosts", path, "--", "true"},
      {kGleaner, "plan", "--workers", "2", "--bandwidth", "1Gbit", "--tensors", path},
      {kGleaner, "autoscale", path},
      {kGleaner, "status", "--kubeconfig", path},
      {bin_dir() + "/gleaner-summer", "--coordinator", "127.0.0.1:1", "--listen", "127.0.0.1:0", "--token-file", path}};
  for (const std::vector<std::string>& command : wrong) {
    const Ended ended = run_to_end(command);
    EXPECT_EQ(ended.status, 1) << testing::PrintToString(command);
    EXPECT_THAT(ended.errors, AllOf(HasSubstr("can't read the "), HasSubstr(path), HasSubstr("Is a directory")));
  }
}

TEST(Run, HostsMayHaveIPv6Addresses) {
  SKIP_WITHOUT_LOOPBACK6();
  const Scratch scratch;
  const std::string file = scratch / "hosts.json";
  std::ofstream(file)
      << R"({"coordinator": {"address": "::1"}, "workers": [{"address": "::1"}], "summers": [{"address": "::1"}]})";
  const Ended ended = run_to_end({kGleaner,  "run",       "--workers", "1",  "--summers", "1",     "--hosts",
                                  file,      "--metrics", "[::1]:0",   "--", kGleaner,    "bench", "push-pull",
                                  "--bytes", "64KiB",     "--steps",   "2",  "--dtype",   "fp32",  "--json"});
  EXPECT_EQ(ended.status, 0) << ended.errors;
  EXPECT_THAT(ended.output, HasSubstr("[worker 0]"));
}

TEST(Run, HostsHaveAddressesAndPrefixes) {
  const Scratch scratch;
  const std::string file = scratch / "hosts.json";
  std::ofstream(file) << R"({"coordinator": {"address": "127.0.0.3"},
                             "workers": [{"address": "127.0.0.1", "prefix": ["env", "WHERE=here"]},
                                         {"address": "127.0.0.2", "prefix": ["env", "-i", "WHERE=there"]}]})";
  Ended ended = run_shell({"--workers", "2", "--hosts", file}, "echo $WHERE $GLEANER_ADDRESS $GLEANER_COORDINATOR");
  EXPECT_EQ(ended.status, 0) << ended.errors;
  EXPECT_THAT(ended.output, AllOf(HasSubstr("[worker 0] here 127.0.0.1:0 127.0.0.3:"),
                                  HasSubstr("[worker 1] there 127.0.0.2:0 127.0.0.3:")));
  ended = run_shell({"--workers", "3", "--hosts", file}, "true");
  EXPECT_EQ(ended.status, 2);
  EXPECT_THAT(ended.errors, HasSubstr("at least 3 workers; it has 2"));
  std::ofstream(file) << "{\"workers\": [7]}";
  EXPECT_THAT(run_shell({"--workers", "1", "--hosts", file}, "true").errors, HasSubstr("workers[0]: expected"));
  std::ofstream(file) << "{";
  EXPECT_THAT(run_shell({"--workers", "1", "--hosts", file}, "true").errors, HasSubstr("not JSON"));
  ended = run_shell({"--workers", "1", "--hosts", scratch / "none"}, "true");
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.errors, HasSubstr("No such file"));
}

TEST(Run, FailsTheJobWhenAMemberDoesNotJoin) {
  const Marker marker;
  Program program(bash_run({"--workers", "1", "--start-timeout", "0.5"}, marker.sleep()));
  EXPECT_EQ(program.wait(), 1);
  EXPECT_THAT(program.errors(), HasSubstr("worker 0 did not join within 500ms"));
  EXPECT_EQ(marker.alive(), 0);
}

TEST(Run, AClosedOutputPipeEndsTheJob) {
  const Marker marker;
  const Ended ended = run_to_end(
      {"/bin/bash", "-o", "pipefail", "-c",
       absl::StrCat(kGleaner, " run --workers 1 --no-progress -- bash -c 'yes & ", marker.sleep(), "' | head -n 1")});
  EXPECT_EQ(ended.status, 128 + SIGPIPE);
  EXPECT_EQ(ended.output, "[worker 0] y\n");
  EXPECT_EQ(ended.errors, "gleaner run: the job was ended, since its standard output was closed by its reader\n");
  EXPECT_EQ(marker.alive(), 0);
}

TEST(Run, ReportsOnceThatStandardOutputCannotBeWrittenAndContinues) {
  const Scratch scratch;
  const struct {
    const char *redirection, *reason;
  } cases[] = {{">/dev/full", "No space left on device"}, {">&-", "Bad file descriptor"}};
  for (const auto& [redirection, reason] : cases) {
    const std::string done = scratch / absl::StrCat("done", std::string(1, reason[0]));
    const Ended ended = run_to_end({"/bin/bash", "-c",
                                    absl::StrCat(kGleaner, " run --workers 2 -- bash -c 'echo a; sleep 0.5; echo b; ",
                                                 "echo c >&2; touch ", done, "$GLEANER_WORKER' ", redirection)});
    EXPECT_EQ(ended.status, 0) << ended.errors;
    EXPECT_THAT(ended.errors, AllOf(HasSubstr(absl::StrCat("gleaner run: can't write standard output: ", reason)),
                                    HasSubstr("[worker 1] c"), Not(HasSubstr("is lost:"))));
    EXPECT_EQ(ended.errors.find("can't write"), ended.errors.rfind("can't write")) << ended.errors;
    for (const char* worker : {"0", "1"}) EXPECT_TRUE(std::filesystem::exists(done + worker));
  }
}

TEST(Run, ReportsAnInterrupt) {
  const std::string train =
      absl::StrCat(kGleaner, " bench push-pull --bytes 64KiB --steps 100000000 --dtype fp32 --json");
  const struct {
    std::string script;
    int signal, status;
  } cases[] = {{"exec " + train, SIGTERM, 128 + SIGTERM},
               {"exec " + train, SIGINT, 128 + SIGINT},
               {"trap 'exit 1' INT; echo ready; sleep 1000 & wait", SIGINT, 128 + SIGINT}};
  for (const auto& [script, signal, status] : cases) {
    const Scratch scratch;
    Program program(bash_run({"--workers", "2"}, absl::StrCat("touch ", scratch.path(), "/$GLEANER_WORKER; ", script)));
    ASSERT_TRUE(
        eventually([&] { return std::filesystem::exists(scratch / "0") && std::filesystem::exists(scratch / "1"); }));
    absl::SleepFor(absl::Seconds(1));
    program.signal(signal);
    EXPECT_EQ(program.wait(), status) << program.errors();
    const std::string errors = program.errors();
    EXPECT_THAT(errors, HasSubstr(absl::StrCat("gleaner run: the job was interrupted by signal ", signal, " (SIG")));
    EXPECT_THAT(errors, Not(HasSubstr("gleaner run: worker")));
  }
}

TEST(Run, WritesTheSummary) {
  const Scratch scratch;
  const std::string file = scratch / "summary.json";
  ASSERT_EQ(run({"--workers", "2", "--summary", file}, {"true"}).status, 0);
  const auto summary = nlohmann::json::parse(contents(file));
  EXPECT_EQ(summary["workers"], 2);
  EXPECT_EQ(summary["steps"], 0);
  const Ended ended = run({"--workers", "2", "--summary", "/dev/full"}, {"true"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.errors, AllOf(HasSubstr("/dev/full"), HasSubstr("No space left")));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
}

TEST(Run, ChecksBeforeTheJobThatTheSummaryCanBeWritten) {
  const Scratch scratch;
  for (const std::string& file : {scratch / "no/such/summary.json", scratch.path()}) {
    const Ended ended = run({"--workers", "1", "--summary", file}, {"touch", scratch / "started"});
    EXPECT_EQ(ended.status, 1);
    EXPECT_THAT(ended.errors, AllOf(HasSubstr("--summary"), HasSubstr(file), HasSubstr("can't be written")));
    EXPECT_FALSE(std::filesystem::exists(scratch / "started"));
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(scratch.path()), {}), 0) << "nothing is left";
}

// With real summers and the real library, unlike the other tests in this file.
TEST(Run, WholeJob) {
  const Scratch scratch;
  const std::string file = scratch / "summary.json";
  const Ended ended =
      run({"--workers", "2", "--summers", "1", "--bandwidth", "10Gbit", "--summary", file},
          {kGleaner, "bench", "push-pull", "--bytes", "1MiB", "--steps", "3", "--dtype", "fp32", "--verify", "--json"});
  EXPECT_EQ(ended.status, 0) << ended.output << ended.errors;
  EXPECT_THAT(ended.output, AllOf(HasSubstr("[worker 0] {"), HasSubstr("[worker 1] {")));
  const auto summary = nlohmann::json::parse(contents(file));
  EXPECT_TRUE(summary["succeeded"]);
  EXPECT_GE(summary["steps"], 3);
  EXPECT_GE(summary["bytes_per_step"], 1 << 19);
  // Over shared memory the job may exceed 10 Gbit/s, and then there is no efficiency.
  EXPECT_LE(summary["efficiency"], 1);
  EXPECT_EQ(summary["efficiency"] > 0, summary["efficiency_basis"] == "bandwidth") << summary;
  EXPECT_GT(summary["bound_seconds"], 0);
  EXPECT_GE(summary["last_minute"]["steps"], 1) << summary;
  ASSERT_GE(summary["epochs"].size(), 1) << summary;
  EXPECT_EQ(summary["epochs"][0]["summers"], 1);
}

TEST(Run, FailureIsThatOfTheWorkerThatCausedIt) {
  // Worker 1 is killed during the job, and worker 0 fails because of that.
  const Ended ended = run_shell(
      {"--workers", "2"}, absl::StrCat("if [ $GLEANER_WORKER = 1 ]; then (sleep 1; kill -KILL $$) & fi; exec ",
                                       kGleaner, " bench push-pull --bytes 1MiB --steps 1000000 --dtype fp32 --json"));
  EXPECT_EQ(ended.status, 128 + SIGKILL) << ended.errors;
  EXPECT_THAT(ended.errors, HasSubstr("worker 1 at 127.0.0.1:"));
}

TEST(Run, EveryRankGetsTheErrorOfAKilledRank) {
  const Ended ended = run_shell(
      {"--workers", "3"}, absl::StrCat("if [ $GLEANER_WORKER = 1 ]; then (sleep 1; kill -KILL $$) & fi; exec ",
                                       kGleaner, " bench push-pull --bytes 1MiB --steps 1000000 --dtype fp32 --json"));
  EXPECT_EQ(ended.status, 128 + SIGKILL) << ended.errors;
  EXPECT_THAT(ended.errors, HasSubstr("gleaner run: worker 1"));
  for (const char* witness : {"[worker 0] ", "[worker 2] "}) {
    const size_t line = ended.errors.find(witness);
    ASSERT_NE(line, std::string::npos) << ended.errors;
    EXPECT_THAT(ended.errors.substr(line, ended.errors.find('\n', line) - line),
                AllOf(HasSubstr("worker 1"), HasSubstr("was killed by signal 9 (SIGKILL)")));
  }
}

TEST(Run, AWorkerThatExitsBeforeItJoinsEndsTheJob) {
  for (const int status : {0, 7}) {
    const Ended ended = run_shell(
        {"--workers", "2"}, absl::StrCat("if [ $GLEANER_WORKER = 1 ]; then exit ", status, "; fi; exec ", kGleaner,
                                         " bench push-pull --bytes 1MiB --steps 10 --dtype fp32 --json"));
    EXPECT_NE(ended.status, 0);
    if (status != 0) {
      EXPECT_EQ(ended.status, status);
    }
    EXPECT_THAT(ended.errors, HasSubstr(absl::StrCat("worker 1 exited with status ", status, " before")));
  }
}

pid_t summer_of(const std::string& job) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string line = contents(entry.path().string() + "/cmdline");
    const bool is_summer = line.substr(0, line.find('\0')).ends_with("gleaner-summer");
    if (is_summer && line.find(job) != std::string::npos) return std::stoi(entry.path().filename());
  }
  return 0;
}

TEST(Run, ContinuesWithoutASummerKilledBeforeTheWorkersJoin) {
  const Scratch scratch;
  for (const int signal : {SIGKILL, SIGTERM}) {
    const Marker job;
    const std::string go = scratch / absl::StrCat("go", signal);
    Program program(bash_run({"--workers", "2", "--summers", "1", "--log-level", "info", "--job", job.word()},
                             absl::StrCat("until [ -e ", go, " ]; do sleep 0.05; done; exec ", kGleaner,
                                          " bench push-pull --bytes 64KiB --steps 3 --dtype fp32 --verify --json")));
    ASSERT_TRUE(eventually([&] { return program.errors().find("1 of 1 summer") != std::string::npos; }));
    const pid_t summer = summer_of(job.word());
    ASSERT_GT(summer, 0);
    ::kill(summer, signal);
    ASSERT_TRUE(eventually([&] { return summer_of(job.word()) == 0; }));
    std::ofstream(go) << "go";
    EXPECT_EQ(program.wait(), 0) << program.errors();
    EXPECT_THAT(program.output(), AllOf(HasSubstr("[worker 0] {"), HasSubstr("[worker 1] {")));
    if (signal == SIGKILL) {
      EXPECT_THAT(program.errors(), AllOf(HasSubstr("the job begins without it"), HasSubstr("summer 0"),
                                          HasSubstr("was killed by signal 9 (SIGKILL)")));
    }
  }
}

TEST(Run, ASummerThatCannotServeEndsTheJob) {
  const Scratch scratch;
  const Marker marker;
  const std::string file = scratch / "hosts.json";
  std::ofstream(file) << R"({"workers": [{"address": "127.0.0.1"}],
                             "summers": [{"address": "127.0.0.1", "prefix": ["sh", "-c", "exit 3"]}]})";
  Program program(bash_run({"--workers", "1", "--summers", "1", "--hosts", file}, marker.sleep()));
  EXPECT_EQ(program.wait(), 3);
  EXPECT_THAT(program.errors(), HasSubstr("summer 0 exited with status 3 before it had joined the job"));
  EXPECT_EQ(marker.alive(), 0);
}

TEST(Run, NamesTheProcessThatFailed) {
  EXPECT_THAT(run_shell({"--workers", "2"}, "exit 5").errors, HasSubstr("exited with status 5"));
  EXPECT_THAT(run_shell({"--workers", "1"}, "kill -SEGV $$").errors, HasSubstr("was killed by signal 11 (SIGSEGV)"));
  EXPECT_THAT(run_shell({"--workers", "1"}, "sh -c 'kill -SEGV $$'; exit $?").errors,
              HasSubstr("exited with status 139, which shells return after SIGSEGV"));
}

TEST(Run, ReportsThatNoWorkerJoined) {
  EXPECT_THAT(run_shell({"--workers", "2"}, "true").errors,
              AllOf(HasSubstr("warning: no process joined the job"), HasSubstr("gleaner.init()")));
  const Ended joined = run({"--workers", "1"}, {kGleaner, "bench", "push-pull", "--bytes", "64KiB", "--steps", "1",
                                                "--dtype", "fp32", "--json"});
  EXPECT_EQ(joined.status, 0) << joined.errors;
  EXPECT_THAT(joined.errors, Not(HasSubstr("no process joined")));
}

TEST(Run, FailureIsThatOfTheWorkerThatCausedItEvenIfItEndsLast) {
  const Ended ended = run_shell(
      {"--workers", "2"},
      absl::StrCat(kGleaner, " bench push-pull --bytes 1MiB --steps 1000000 --dtype fp32 --json & ",
                   "if [ $GLEANER_WORKER = 1 ]; then sleep 1; kill -KILL $!; sleep 0.7; exit 5; fi; wait $!"));
  EXPECT_EQ(ended.status, 5) << ended.errors;
}

}  // namespace
}  // namespace gleaner
