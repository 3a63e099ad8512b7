#include "common/flags/command.h"

#include <gmock/gmock.h>

#include <limits>

#include "absl/strings/str_cat.h"
#include "common/flags/mistake.h"

namespace gleaner::flags {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Has a program with subcommands, and one without.
class Flags : public testing::Test {
 protected:
  Flags() {
    program_.require_command();
    Command run = program_.add_command("run", "Runs");
    run.add_number("--workers", workers_, "How many").required();
    run.add_text("--transports", transports_, "By what").environment("GLEANER_TEST_TRANSPORTS");
    run.add_texts("COMMAND", command_, "What to run");
    run.end_flags_at_first_positional();
    run.add_number("--seconds", seconds_, "How long").between(0.1, 1e6).environment("GLEANER_TEST_SECONDS");
    run.add_number("--rate", rate_, "How fast").positive();
    run.add_old_name("--transports", "--transport");
    program_.add_command("coordinator", "Coordinates").add_text("--listen", listen_, "Where");
    bench_.require_command();
    Command sum = bench_.add_command("sum", "Sums");
    sum.add_text("--dtype", dtype_, "Of what").one_of({"a", "b"});
    sum.add_number("--seed", seed_, "Of the data");
    sum.add_number("--offset", offset_, "Of the data");
  }

  struct Parsed {
    std::optional<int> status;
    std::string output, errors;
  };
  Parsed parse(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "prog");
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const std::optional<int> status = program_.parse(static_cast<int>(arguments.size()), arguments.data());
    return {status, testing::internal::GetCapturedStdout(), testing::internal::GetCapturedStderr()};
  }

  Program program_{"prog", "Does things", ""};
  Command bench_{program_.add_command("bench", "Measures")};
  int workers_ = 0;
  uint64_t seed_ = 0;
  int64_t offset_ = 0;
  double seconds_ = 1, rate_ = 1;
  std::string transports_, listen_, dtype_;
  std::vector<std::string> command_;
};

TEST_F(Flags, ACorrectCommandLineRunsTheCommand) {
  EXPECT_EQ(parse({"run", "--workers", "2", "--", "echo", "--no-such=", "--workers"}).status, std::nullopt);
  EXPECT_EQ(workers_, 2);
  EXPECT_EQ(command_, (std::vector<std::string>{"echo", "--no-such=", "--workers"}));
}

TEST_F(Flags, ArgumentsAfterDashesArriveUnchanged) {
  const std::vector<const char*> words = {"[1,2]", "[]", "{}", "%%", "", "[a b]", "--", "[,]", "[1][2]", "--x=[1]"};
  for (const bool dashes : {true, false}) {
    std::vector<const char*> arguments = {"run", "--workers", "2", "prog"};
    if (dashes) arguments.insert(arguments.end() - 1, "--");
    arguments.insert(arguments.end(), words.begin(), words.end());
    command_.clear();
    EXPECT_EQ(parse(arguments).status, std::nullopt);
    std::vector<std::string> expected(words.begin(), words.end());
    expected.insert(expected.begin(), "prog");
    EXPECT_EQ(command_, expected);
  }
}

TEST_F(Flags, AValueInBracketsIsOneValue) {
  EXPECT_EQ(parse({"run", "--workers", "2", "--transports", "[tcp,shm]", "--", "true"}).status, std::nullopt);
  EXPECT_EQ(transports_, "[tcp,shm]");
  EXPECT_EQ(parse({"run", "--workers", "2", "--transports=[tcp]", "--", "true"}).status, std::nullopt);
  EXPECT_EQ(transports_, "[tcp]");
  EXPECT_EQ(parse({"run", "--workers", "[2]", "--", "true"}).errors,
            "prog run: Could not convert: --workers = [2]\n'prog run --help' lists all flags\n");
  EXPECT_THAT(parse({"[run]"}).errors, HasSubstr("unknown command '[run]'"));
}

TEST_F(Flags, IntegersFitTheirType) {
  for (const char* seed : {"18446744073709551616", "99999999999999999999", "-1", "0x1ffffffffffffffff"}) {
    const Parsed parsed = parse({"bench", "sum", "--seed", seed});
    EXPECT_EQ(parsed.status, 2) << seed;
    EXPECT_THAT(parsed.errors, AllOf(HasSubstr("--seed"), HasSubstr(seed)));
  }
  EXPECT_EQ(parse({"bench", "sum", "--seed", "18446744073709551615"}).status, std::nullopt);
  EXPECT_EQ(seed_, std::numeric_limits<uint64_t>::max());
  for (const char* offset : {"9223372036854775808", "-9223372036854775809"}) {
    const Parsed parsed = parse({"bench", "sum", "--offset", offset});
    EXPECT_EQ(parsed.status, 2) << offset;
    EXPECT_THAT(parsed.errors, AllOf(HasSubstr("--offset"), HasSubstr(offset)));
  }
  EXPECT_EQ(parse({"bench", "sum", "--offset", "-9223372036854775808"}).status, std::nullopt);
}

TEST_F(Flags, TheInnermostCommandIsTheChosenOne) {
  bool ran = false;
  bench_.on_chosen([&] { ran = true; });
  EXPECT_EQ(parse({"bench", "sum", "--dtype=a"}).status, std::nullopt);
  EXPECT_EQ(program_.chosen(), "prog bench sum");
  EXPECT_TRUE(ran);
  EXPECT_EQ(parse({"coordinator"}).status, std::nullopt);
  EXPECT_EQ(program_.chosen(), "prog coordinator");
}

TEST_F(Flags, AnErrorIsPrintedAfterTheChosenCommand) {
  ASSERT_EQ(parse({"bench", "sum"}).status, std::nullopt);
  testing::internal::CaptureStderr();
  EXPECT_EQ(program_.report(absl::OkStatus()), 0);
  EXPECT_EQ(program_.report(absl::InvalidArgumentError("one")), 2);
  EXPECT_EQ(program_.report(absl::UnavailableError("two")), 1);
  EXPECT_EQ(program_.report(absl::UnavailableError("three"), 2), 2);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "prog bench sum: one\nprog bench sum: two\nprog bench sum: three\n");
}

TEST_F(Flags, AnOutlineHasCommandsFlagsAndTheirWords) {
  const CommandOutline outline = program_.outline();
  ASSERT_EQ(outline.commands.size(), 3u);
  const CommandOutline& sum = outline.commands[0].commands.at(0);
  EXPECT_EQ(sum.path, "prog bench sum");
  ASSERT_EQ(sum.flags.size(), 4u);  // --help is the first
  EXPECT_EQ(sum.flags[1].names, std::vector<std::string>{"--dtype"});
  EXPECT_EQ(sum.flags[1].words, (std::vector<std::string>{"a", "b"}));
  const std::vector<FlagOutline>& flags = outline.commands[1].flags;
  EXPECT_TRUE(std::any_of(flags.begin(), flags.end(), [](const FlagOutline& flag) {
    return flag.is_old_name && flag.names == std::vector<std::string>{"--transport"};
  }));
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

TEST_F(Flags, AValueWithAUnitIsNamedAsNoNumber) {
  EXPECT_THAT(parse({"run", "--seconds", "5s"}).errors, HasSubstr("expected a number, without a unit"));
  EXPECT_THAT(parse({"run", "--seconds", "1e9"}).errors, Not(HasSubstr("unit")));
}

TEST_F(Flags, AWrongValueIsNamedWithItsVariable) {
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

TEST_F(Flags, AnUnknownFlagIsNamedWithASuggestion) {
  const Parsed parsed = parse({"run", "--worker", "2", "--", "true"});
  EXPECT_EQ(parsed.status, 2);
  EXPECT_THAT(parsed.errors, AllOf(HasSubstr("prog run: unknown flag '--worker'"), HasSubstr("mean '--workers'?"),
                                   HasSubstr("'prog run --help'")));
  EXPECT_THAT(parse({"run", "--workers=2", "--trasnports=x"}).errors, HasSubstr("mean '--transports'?"));
  EXPECT_THAT(parse({"run", "--workers=2", "--quite-different"}).errors,
              AllOf(HasSubstr("unknown flag '--quite-different'"), Not(HasSubstr("did you mean"))));
}

TEST_F(Flags, AFlagBeforeItsCommandIsNamedWithItsPlace) {
  EXPECT_THAT(parse({"--workers", "2", "run"}).errors,
              HasSubstr("a command's flags come after it: 'prog run --workers'"));
}

TEST_F(Flags, AnUnknownCommandIsNamedWithASuggestion) {
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

TEST_F(Flags, AnEmptyValueAfterTheEqualsSignIsAValue) {
  transports_ = "x";
  EXPECT_EQ(parse({"run", "--workers", "2", "--transports=", "--", "true"}).status, std::nullopt);
  EXPECT_EQ(transports_, "");
}

TEST_F(Flags, AProgramWithoutCommandsPrintsItsCompletion) {
  Program app("one-thing", "One thing", "");
  std::string value;
  app.add_text("--color", value, "Which").required().one_of({"red", "green"});
  const char* arguments[] = {"one-thing", "--completion", "bash"};
  testing::internal::CaptureStdout();
  EXPECT_EQ(app.parse(3, arguments), 0);
  EXPECT_THAT(testing::internal::GetCapturedStdout(), AllOf(HasSubstr("complete -o default -F _one_thing one-thing"),
                                                            HasSubstr("--color"), HasSubstr("red green")));
}

TEST_F(Flags, AWordMayBeInLettersOfAnyCase) {
  Program app("one-thing", "One thing", "");
  std::string value;
  app.add_text("--color", value, "Which").one_of_any_case({"DarkRed", "Green"});
  const char* arguments[] = {"one-thing", "--color", "darkred"};
  EXPECT_EQ(app.parse(3, arguments), std::nullopt);
  EXPECT_EQ(value, "DarkRed");
  EXPECT_THAT(app.outline().flags,
              testing::Contains(testing::Field(&FlagOutline::words, testing::ElementsAre("DarkRed", "Green"))));
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
