// Tables of all flags and environment variables of the programs that take HOST:PORT or a name. Each takes all good
// values and rejects all bad ones with one message. tests/unit/runtime/config_test.cc has the table of the library's
// variables.
#include <gmock/gmock.h>

#include "absl/strings/str_join.h"
#include "tests/paths.h"
#include "tests/unit/run/program.h"

namespace gleaner {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// A command line that fails after its flags were parsed, for a reason of its own, before it listens or connects.
struct CommandLine {
  std::vector<std::string> words;
  std::string complaint;  // part of the error message when all flags are good
};

const CommandLine kCoordinator = {
    {"gleaner", "coordinator", "--workers", "1", "--token-file", "t", "--listen", "[::1]:0", "--log-level", "nope"},
    "'nope'"};
const CommandLine kRun = {{"gleaner", "run", "--workers", "1", "--log-level", "nope", "--", "true"}, "'nope'"};
const CommandLine kTrace = {{"gleaner", "trace", "--coordinator", "[::1]:1", "--token-file", "/nowhere/t"},
                            "/nowhere/t"};
const CommandLine kSummer = {{"gleaner-summer", "--coordinator", "[::1]:1", "--listen", "[::1]:0", "--token-file",
                              "/dev/null", "--log-level", "nope", "--memory", "much"},
                             "'much'"};
const CommandLine kAgent = {{"gleaner-agent", "--node", "n", "--log-level", "nope"}, "'nope'"};
const CommandLine kMeasuringAgent = {{"gleaner-agent", "--node", "n", "--measure-listen", "[::1]:0", "--measure-peers",
                                      "[::1]:1", "--measure-secret-file", "/nowhere/s"},
                                     "/nowhere/s"};
const CommandLine kOperator = {
    {"gleaner-operator", "--pod-ip", "::1", "--summer-image", "image", "--log-level", "nope"}, "'nope'"};
const CommandLine kExtender = {{"gleaner-scheduler-ext", "--log-level", "nope"}, "'nope'"};

// A flag such as "--metrics", or a variable such as "GLEANER_METRICS", of a program.
struct Setting {
  const CommandLine& command;
  std::string name;
  std::string flag;  // the flag whose place the variable takes
};

// Runs the command line with the setting. A flag comes behind the first words of the command line, and replaces the one
// that is there.
Ended run(const Setting& setting, const std::string& value) {
  const bool is_flag = setting.name.starts_with("--");
  const std::string flag = is_flag ? setting.name : setting.flag;
  std::vector<std::string> words = setting.command.words;
  const auto given = std::find(words.begin(), words.end(), flag);
  if (given != words.end()) words.erase(given, given + 2);
  const size_t command = words[0] == "gleaner" ? 2 : 1;
  words[0] = bin_dir() + "/" + words[0];
  if (is_flag) {
    words.insert(words.begin() + static_cast<ptrdiff_t>(command), {setting.name, value});
  } else {
    words.insert(words.begin(), {"/usr/bin/env", absl::StrCat(setting.name, "=", value)});
  }
  return run_to_end(std::move(words));
}

void expect_taken(const Setting& setting, const std::string& value) {
  const Ended ended = run(setting, value);
  EXPECT_NE(ended.status, 0);
  EXPECT_THAT(ended.errors, AllOf(HasSubstr(setting.command.complaint), Not(HasSubstr("expected at most")),
                                  Not(HasSubstr("is not an address"))))
      << setting.name << "=" << value << " of " << absl::StrJoin(setting.command.words, " ");
}

void expect_refused(const Setting& setting, const std::string& value, const std::vector<std::string>& parts) {
  const Ended ended = run(setting, value);
  const std::string where = absl::StrCat(setting.name, "=", value, " of ", absl::StrJoin(setting.command.words, " "));
  EXPECT_EQ(ended.status, 2) << where;
  EXPECT_THAT(ended.errors, AllOf(HasSubstr(setting.name), Not(HasSubstr(setting.command.complaint)))) << where;
  for (const std::string& part : parts) EXPECT_THAT(ended.errors, HasSubstr(part)) << where;
  // One line, and a line that names --help.
  EXPECT_EQ(std::count(ended.errors.begin(), ended.errors.end(), '\n'), 2) << where << "\n" << ended.errors;
}

std::vector<Setting> address_settings() {
  return {{kCoordinator, "--listen", ""},
          {kCoordinator, "--metrics", ""},
          {kRun, "--metrics", ""},
          {kTrace, "--coordinator", ""},
          {kTrace, "GLEANER_COORDINATOR", "--coordinator"},
          {kSummer, "--coordinator", ""},
          {kSummer, "GLEANER_COORDINATOR", "--coordinator"},
          {kSummer, "--listen", ""},
          {kSummer, "--metrics", ""},
          {kAgent, "--metrics", ""},
          {kAgent, "--health", ""},
          {kMeasuringAgent, "--measure-listen", ""},
          {kMeasuringAgent, "--measure-peers", ""},
          {kOperator, "--listen", ""},
          {kOperator, "--metrics", ""},
          {kOperator, "--health", ""},
          {kExtender, "--listen", ""},
          {kExtender, "GLEANER_LISTEN", "--listen"},
          {kExtender, "--metrics", ""},
          {kExtender, "GLEANER_METRICS", "--metrics"}};
}

bool is_of_the_coordinator(const Setting& setting) {
  return setting.name == "--coordinator" || setting.name == "GLEANER_COORDINATOR";
}

TEST(Addresses, MayBeIPv6NamesAndPort0) {
  for (const Setting& setting : address_settings()) {
    expect_taken(setting, "[::1]:9100");
    if (!is_of_the_coordinator(setting)) expect_taken(setting, "worker-0.job.svc:0");
  }
}

TEST(Addresses, CoordinatorNeedsAPort) {
  for (const Setting& setting : address_settings()) {
    if (!is_of_the_coordinator(setting)) continue;
    for (const char* value : {"[::1]:0", "coordinator:0", "127.0.0.1:00"}) {
      expect_refused(setting, value, {value, "a port above 0"});
    }
  }
}

TEST(Addresses, ErrorsSayWhatWasExpectedAndWhatCame) {
  for (const Setting& setting : address_settings()) {
    for (const std::string value : {"::1:9100", "9100", "caf\xe9 :1"}) {
      const std::string quoted = value == "caf\xe9 :1" ? "'caf\\xe9 :1'" : "'" + value + "'";
      expect_refused(setting, value, {quoted, "HOST:PORT, for example 127.0.0.1:7000 or [::1]:7000"});
    }
  }
}

TEST(Labels, AreKeysOfKubernetes) {
  const Setting topology{kExtender, "--topology", ""};
  expect_taken(topology, "zone,example.com/row|example.com/rack");
  for (const std::string value : {"zone,,rack", "no label", "a/b/c"}) {
    const Ended ended = run(topology, value);
    EXPECT_EQ(ended.status, 2) << value;
    EXPECT_THAT(ended.errors, AllOf(HasSubstr("--topology: "), HasSubstr("is not the key of a Kubernetes label")))
        << value;
  }
}

std::vector<Setting> name_settings() {
  return {{kCoordinator, "--job", ""},
          {kRun, "--job", ""},
          {kTrace, "--job", ""},
          {kTrace, "GLEANER_JOB", "--job"},
          {kSummer, "--job", ""},
          {kSummer, "GLEANER_JOB", "--job"},
          {kAgent, "--node", ""},
          {kAgent, "NODE_NAME", "--node"},
          {kOperator, "--identity", ""},
          {kOperator, "POD_NAME", "--identity"},
          {kOperator, "--namespace", ""},
          {kOperator, "POD_NAMESPACE", "--namespace"},
          {kOperator, "--watch-namespace", ""}};
}

TEST(NamesOfFlags, MayBeUtf8) {
  for (const Setting& setting : name_settings()) {
    for (const char* value : {"caf\xc3\xa9", "\xe6\xa8\xa1\xe5\x9e\x8b 7"}) expect_taken(setting, value);
  }
}

TEST(NamesOfFlags, ErrorsSayWhatWasExpectedAndWhatCame) {
  const struct {
    std::string value, quoted, why;
  } wrong[] = {{"caf\xe9", "'caf\\xe9'", "is not UTF-8 from byte 4"},
               {"two\nlines", "'two\\x0alines'", "has a control character at byte 4"},
               {std::string(513, 'n'), "'nnnn", "has 513 bytes"}};
  for (const Setting& setting : name_settings()) {
    for (const auto& [value, quoted, why] : wrong) {
      expect_refused(setting, value, {quoted, why, "expected at most 512 bytes of UTF-8 without control characters"});
    }
  }
}

}  // namespace
}  // namespace gleaner
