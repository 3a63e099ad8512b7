#include "common/flags/flags.h"

#include <gmock/gmock.h>

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "common/flags/completion.h"

namespace gleaner::flags {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// A program with commands, and one without.
class Flags : public testing::Test {
 protected:
  Flags() {
    program_.name("prog");
    program_.require_subcommand(1);
    CLI::App* run = program_.add_subcommand("run", "Runs");
    run->add_option("--workers", workers_, "How many")->required();
    run->add_option("--transports", transports_, "By what")->envname("GLEANER_TEST_TRANSPORTS");
    run->add_option("COMMAND", command_, "What to run");
    run->positionals_at_end();
    run->add_option("--seconds", seconds_, "How long")->check(CLI::Range(0.1, 1e6))->envname("GLEANER_TEST_SECONDS");
    run->add_option("--rate", rate_, "How fast")->check(CLI::PositiveNumber);
    add_old_name(*run, "--transports", "--transport");
    program_.add_subcommand("coordinator", "Coordinates")->add_option("--listen", listen_, "Where");
    CLI::App* bench = program_.add_subcommand("bench", "Measures");
    bench->require_subcommand(1);
    bench->add_subcommand("sum", "Sums")->add_option("--dtype", dtype_, "Of what")->check(CLI::IsMember({"a", "b"}));
  }

  struct Parsed {
    std::optional<int> status;
    std::string output, errors;
  };
  Parsed parse(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "prog");
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const std::optional<int> status = flags::parse(program_, static_cast<int>(arguments.size()), arguments.data());
    return {status, testing::internal::GetCapturedStdout(), testing::internal::GetCapturedStderr()};
  }

  CLI::App program_{"Does things"};
  int workers_ = 0;
  double seconds_ = 1, rate_ = 1;
  std::string transports_, listen_, dtype_;
  std::vector<std::string> command_;
};

TEST_F(Flags, AGoodCommandLineGoesOn) {
  EXPECT_EQ(parse({"run", "--workers", "2", "--", "echo", "--no-such=", "--workers"}).status, std::nullopt);
  EXPECT_EQ(workers_, 2);
  EXPECT_EQ(command_, (std::vector<std::string>{"echo", "--no-such=", "--workers"}));
}

TEST_F(Flags, NumbersAreFinite) {
  for (const char* number : {"nan", "NaN", "inf", "-inf"}) {
    for (const char* flag : {"--seconds", "--rate"}) {
      const Parsed parsed = parse({"run", "--workers", "2", flag, number, "--", "true"});
      EXPECT_EQ(parsed.status, 2) << flag << " " << number;
      EXPECT_THAT(parsed.errors, AllOf(HasSubstr(flag), HasSubstr(number)));
    }
  }
  EXPECT_EQ(parse({"run", "--workers", "2", "--seconds", "2.5", "--rate", "3", "--", "true"}).status, std::nullopt);
  EXPECT_EQ(seconds_, 2.5);
}

TEST_F(Flags, AWrongValueIsNamedByTheVariableItCameFrom) {
  for (const char* value : {"soon", "nan", "0"}) {
    ::setenv("GLEANER_TEST_SECONDS", value, 1);
    const Parsed parsed = parse({"run", "--workers", "2", "--", "true"});
    EXPECT_EQ(parsed.status, 2);
    EXPECT_THAT(parsed.errors, HasSubstr(absl::StrCat("run: GLEANER_TEST_SECONDS='", value, "': Value ", value)));
    EXPECT_THAT(parse({"run", "--workers", "2", "--seconds", "never", "--", "true"}).errors,
                HasSubstr("run: --seconds: Value never"));
  }
  ::unsetenv("GLEANER_TEST_SECONDS");
}

TEST_F(Flags, AnUnknownFlagIsNamedWithWhatWasMeant) {
  const Parsed parsed = parse({"run", "--worker", "2", "--", "true"});
  EXPECT_EQ(parsed.status, 2);
  EXPECT_THAT(parsed.errors, AllOf(HasSubstr("prog run: unknown flag '--worker'"), HasSubstr("mean '--workers'?"),
                                   HasSubstr("'prog run --help'")));
  EXPECT_THAT(parse({"run", "--workers=2", "--trasnports=x"}).errors, HasSubstr("mean '--transports'?"));
  EXPECT_THAT(parse({"run", "--workers=2", "--quite-different"}).errors,
              AllOf(HasSubstr("unknown flag '--quite-different'"), Not(HasSubstr("did you mean"))));
}

TEST_F(Flags, AFlagBeforeItsCommandIsToldWhereItBelongs) {
  EXPECT_THAT(parse({"--workers", "2", "run"}).errors,
              HasSubstr("a command's flags come after it: 'prog run --workers'"));
}

TEST_F(Flags, AnUnknownCommandIsNamedWithWhatWasMeant) {
  EXPECT_THAT(parse({"rum", "--workers", "2"}).errors,
              AllOf(HasSubstr("unknown command 'rum'"), HasSubstr("mean 'run'?")));
  EXPECT_THAT(parse({"coord"}).errors, HasSubstr("mean 'coordinator'?"));
  EXPECT_THAT(parse({"bench", "sums"}).errors, AllOf(HasSubstr("prog bench: unknown command"), HasSubstr("'sum'")));
  EXPECT_EQ(parse({}).status, 2);
}

TEST_F(Flags, AWrongValueKeepsItsExplanation) {
  const Parsed parsed = parse({"run", "--workers", "two", "--", "true"});
  EXPECT_EQ(parsed.status, 2);
  EXPECT_THAT(parsed.errors, AllOf(HasSubstr("--workers"), HasSubstr("two")));
}

TEST_F(Flags, OldNamesWorkAndAreNotShown) {
  ::setenv("GLEANER_TEST_TRANSPORTS", "shm", 1);
  EXPECT_EQ(parse({"run", "--workers", "2", "--transport", "tcp"}).status, std::nullopt);
  ::unsetenv("GLEANER_TEST_TRANSPORTS");
  EXPECT_EQ(transports_, "tcp");
  const Parsed help = parse({"run", "--help"});
  EXPECT_EQ(help.status, 0);
  EXPECT_THAT(help.output, AllOf(HasSubstr("--transports"), Not(HasSubstr("--transport "))));
}

TEST_F(Flags, AnEmptyValueAfterTheEqualsSignIsOne) {
  transports_ = "x";
  EXPECT_EQ(parse({"run", "--workers", "2", "--transports=", "--", "true"}).status, std::nullopt);
  EXPECT_EQ(transports_, "");
}

TEST_F(Flags, AProgramWithoutCommandsPrintsItsCompletion) {
  CLI::App app{"One thing"};
  app.name("one-thing");
  std::string value;
  app.add_option("--color", value, "Which")->required()->check(CLI::IsMember({"red", "green"}));
  const char* arguments[] = {"one-thing", "--completion", "bash"};
  testing::internal::CaptureStdout();
  EXPECT_EQ(flags::parse(app, 3, arguments), 0);
  EXPECT_THAT(testing::internal::GetCapturedStdout(), AllOf(HasSubstr("complete -o default -F _one_thing one-thing"),
                                                            HasSubstr("--color"), HasSubstr("red green")));
}

TEST(Nearest, CountsLettersAndAbbreviations) {
  const std::vector<std::string> known = {"--summers", "--workers", "--start-timeout"};
  EXPECT_EQ(nearest("--sumers", known), "--summers");
  EXPECT_EQ(nearest("--wrokers", known), "--workers");
  EXPECT_EQ(nearest("--start", known), "--start-timeout");
  EXPECT_EQ(nearest("--x", known), "");
}

}  // namespace
}  // namespace gleaner::flags
