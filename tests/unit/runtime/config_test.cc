#include "comm-lib/runtime/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "absl/strings/match.h"
#include "common/base/names.h"
#include "tests/unit/run/program.h"

namespace gleaner::runtime {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class ConfigTest : public testing::Test {
 protected:
  ConfigTest() {
    for (const char* name : {"GLEANER_LOCAL_RANK", "GLEANER_LOCAL_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE",
                             "GLEANER_CA_FILE", "GLEANER_PLAN_TIMEOUT", "GLEANER_OPEN_TIMEOUT", "GLEANER_TRANSPORTS",
                             "GLEANER_SHM_DIR", "GLEANER_RDMA_DEVICE", "GLEANER_RDMA_NEAR", "GLEANER_RDMA_POLL"}) {
      ::unsetenv(name);
    }
    std::ofstream(scratch_ / "token") << "secret\n";
    ::setenv("GLEANER_COORDINATOR", "127.0.0.1:7070", 1);
    ::setenv("GLEANER_WORKER", "0", 1);
    ::setenv("GLEANER_TOKEN_FILE", (scratch_ / "token").c_str(), 1);
  }
  static absl::StatusOr<Config> read() {
    const gln_options options = GLN_OPTIONS_INIT;
    return read_config(options);
  }

  Scratch scratch_;
};

TEST_F(ConfigTest, TakesLocalRanksFromTorchrunByDefault) {
  EXPECT_EQ(read()->local_rank, 0u);
  EXPECT_EQ(read()->local_size, 1u);
  ::setenv("LOCAL_RANK", "2", 1);
  ::setenv("LOCAL_WORLD_SIZE", "4", 1);
  EXPECT_EQ(read()->local_rank, 2u);
  EXPECT_EQ(read()->local_size, 4u);
  ::setenv("GLEANER_LOCAL_SIZE", "8", 1);
  EXPECT_EQ(read()->local_rank, 2u);
  EXPECT_EQ(read()->local_size, 8u);
  ::setenv("GLEANER_LOCAL_RANK", "7", 1);
  EXPECT_EQ(read()->local_rank, 7u);
  ::unsetenv("GLEANER_LOCAL_RANK");
  ::setenv("LOCAL_RANK", "two", 1);
  EXPECT_THAT(std::string(read().status().message()), HasSubstr("LOCAL_RANK='two'"));
}

TEST_F(ConfigTest, ReadsTransports) {
  using transport::Kind;
  EXPECT_EQ(read()->transports.preferences, transport::Preferences());
  EXPECT_EQ(read()->transports.shm_directory, "/dev/shm");
  ::setenv("GLEANER_TRANSPORTS", "rdma,tcp", 1);
  ::setenv("GLEANER_SHM_DIR", "/run/gleaner", 1);
  ::setenv("GLEANER_RDMA_DEVICE", "mlx5_0:1", 1);
  ::setenv("GLEANER_RDMA_NEAR", "0000:3b:00.0", 1);
  EXPECT_THAT(read()->transports.preferences.kinds, testing::ElementsAre(Kind::kRdma, Kind::kTcp));
  EXPECT_EQ(read()->transports.shm_directory, "/run/gleaner");
  EXPECT_EQ(read()->transports.rdma_device, "mlx5_0:1");
  EXPECT_EQ(read()->transports.rdma_near, "0000:3b:00.0");
  EXPECT_EQ(read()->transports.rdma_poll, absl::ZeroDuration());
  ::setenv("GLEANER_RDMA_POLL", "0.002", 1);
  EXPECT_EQ(read()->transports.rdma_poll, absl::Milliseconds(2));
  gln_options options = GLN_OPTIONS_INIT;
  options.transports = "tcp";
  EXPECT_THAT(read_config(options)->transports.preferences.kinds, testing::ElementsAre(Kind::kTcp));
  ::setenv("GLEANER_TRANSPORTS", "pigeon", 1);
  EXPECT_THAT(std::string(read().status().message()),
              AllOf(HasSubstr("GLEANER_TRANSPORTS='pigeon'"), HasSubstr("expected shm, rdma or tcp")));
  ::unsetenv("GLEANER_TRANSPORTS");
  ::setenv("GLEANER_SHM_DIR", "here", 1);
  EXPECT_THAT(std::string(read().status().message()), HasSubstr("GLEANER_SHM_DIR='here'"));
}

TEST_F(ConfigTest, ReadsFilesAndTimeouts) {
  EXPECT_EQ(read()->ca_file, "");
  EXPECT_EQ(read()->plan_timeout, absl::Minutes(10));
  ::setenv("GLEANER_CA_FILE", "/ca.crt", 1);
  ::setenv("GLEANER_PLAN_TIMEOUT", "2.5", 1);
  ::setenv("GLEANER_OPEN_TIMEOUT", "3", 1);
  const auto config = read();
  EXPECT_EQ(config->ca_file, "/ca.crt");
  EXPECT_EQ(config->token, "secret");
  EXPECT_EQ(config->token_file, scratch_ / "token");
  EXPECT_EQ(config->plan_timeout, absl::Seconds(2.5));
  EXPECT_EQ(config->open_timeout, absl::Seconds(3));
  ::setenv("GLEANER_PLAN_TIMEOUT", "0", 1);
  EXPECT_THAT(std::string(read().status().message()), AllOf(HasSubstr("GLEANER_PLAN_TIMEOUT"), HasSubstr("above 0")));
}

TEST_F(ConfigTest, NamesTheWrongVariableAndTheExpectedValue) {
  const struct {
    const char *variable, *value, *expected;
  } wrong[] = {{"GLEANER_COORDINATOR", "nowhere", "HOST:PORT"},
               {"GLEANER_COORDINATOR", "coordinator:0", "a port above 0"},
               {"GLEANER_COORDINATOR", "[::1]:0", "a port above 0"},
               {"GLEANER_COORDINATOR", "127.0.0.1:0", "a port above 0"},
               {"GLEANER_ADDRESS", "nowhere", "HOST:PORT"},
               {"GLEANER_METRICS", "9100", "HOST:PORT"},
               {"GLEANER_WORKER", "first", "a whole number of at least 0"},
               {"GLEANER_WINDOW", "abc", "a whole number of bytes, such as"},
               {"GLEANER_SUMMER_MEMORY", "-1", "a whole number of bytes, such as"},
               {"GLEANER_BANDWIDTH", "fast", "a bandwidth above 0, such as"},
               {"GLEANER_KERNEL", "cuda", "a kernel that this processor can run: "},
               {"GLEANER_OPEN_TIMEOUT", "nan", "a number of seconds above 0"},
               {"GLEANER_OPEN_TIMEOUT", "inf", "a number of seconds above 0"},
               {"GLEANER_RDMA_POLL", "x", "a number of seconds of at least 0"},
               {"GLEANER_LOG_LEVEL", "loud", "debug, info"}};
  for (const auto& [variable, value, expected] : wrong) {
    const char* const before = std::getenv(variable);
    const std::string kept = before == nullptr ? "" : before;
    ::setenv(variable, value, 1);
    const absl::Status status = read().status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << variable;
    EXPECT_THAT(std::string(status.message()),
                testing::StartsWith(absl::StrCat(variable, "='", value, "': expected ", expected)));
    kept.empty() ? ::unsetenv(variable) : ::setenv(variable, kept.c_str(), 1);
  }
  ::setenv("GLEANER_RDMA_POLL", "0", 1);
  EXPECT_TRUE(read().ok()) << read().status();
}

TEST_F(ConfigTest, EveryAddressMayBeIPv6ANameOrHavePort0) {
  for (const char* variable : {"GLEANER_COORDINATOR", "GLEANER_ADDRESS", "GLEANER_METRICS"}) {
    for (const char* value : {"[::1]:9100", "[2001:db8::2]:0", "localhost:9100", "worker-0.job.svc:0", "127.0.0.1:0"}) {
      const bool has_port = !absl::EndsWith(value, ":0");
      if (variable == std::string("GLEANER_COORDINATOR") && !has_port) continue;  // no member can connect to port 0
      ::setenv(variable, value, 1);
      const auto config = read();
      ASSERT_TRUE(config.ok()) << config.status();
      const Address& address = variable == std::string("GLEANER_COORDINATOR") ? config->coordinator
                               : variable == std::string("GLEANER_ADDRESS")   ? config->address
                                                                              : *config->metrics;
      EXPECT_EQ(address.to_string(), value) << variable;
    }
    for (const char* value : {"::1:9100", "[::1]", "localhost:http"}) {
      ::setenv(variable, value, 1);
      EXPECT_THAT(std::string(read().status().message()),
                  AllOf(testing::StartsWith(absl::StrCat(variable, "='", value, "': expected HOST:PORT"))));
    }
    ::setenv(variable, "127.0.0.1:7070", 1);
  }
  gln_options options = GLN_OPTIONS_INIT;
  options.coordinator = "[::1]:7000";
  options.address = "localhost:0";
  EXPECT_EQ(read_config(options)->coordinator, (Address{"::1", 7000}));
  EXPECT_EQ(read_config(options)->address, (Address{"localhost", 0}));
  ::unsetenv("GLEANER_ADDRESS");
  ::unsetenv("GLEANER_METRICS");
}

TEST_F(ConfigTest, AnAddressIsCompletedByTheRouteToTheCoordinator) {
  const auto complete = [](const char* host) {
    Config config;
    config.coordinator = {"127.0.0.1", 7000};
    config.address.host = host;
    complete_address(config);
    return config;
  };
  EXPECT_EQ(complete("").address, (Address{"127.0.0.1", 0}));
  EXPECT_EQ(complete("").advertise, "");
  EXPECT_EQ(complete("0.0.0.0").address, (Address{"0.0.0.0", 0}));
  EXPECT_EQ(complete("0.0.0.0").advertise, "127.0.0.1");
  EXPECT_EQ(complete("::").advertise, "127.0.0.1");
  EXPECT_EQ(complete("10.0.0.1").address, (Address{"10.0.0.1", 0}));
  EXPECT_EQ(complete("10.0.0.1").advertise, "");
}

TEST_F(ConfigTest, TheJobsNameIsUtf8WithoutControlCharacters) {
  gln_options options = GLN_OPTIONS_INIT;
  options.job = "caf\xc3\xa9";
  EXPECT_EQ(read_config(options)->job, "caf\xc3\xa9");
  for (const std::string& wrong : {std::string("caf\xe9"), std::string("two\nlines"), std::string(513, 'n')}) {
    const std::string message = absl::StrCat(quote(wrong), " ");
    ::setenv("GLEANER_JOB", wrong.c_str(), 1);
    EXPECT_THAT(std::string(read().status().message()), AllOf(HasSubstr("GLEANER_JOB"), HasSubstr(message)));
    ::unsetenv("GLEANER_JOB");
    options.job = wrong.c_str();
    EXPECT_THAT(std::string(read_config(options).status().message()), HasSubstr(message));
  }
}

TEST_F(ConfigTest, ATokenFileThatIsADirectoryIsAnError) {
  ::setenv("GLEANER_TOKEN_FILE", scratch_.path().c_str(), 1);
  EXPECT_THAT(std::string(read().status().message()),
              AllOf(HasSubstr("can't read the token file"), HasSubstr(scratch_.path()), HasSubstr("Is a directory")));
}

}  // namespace
}  // namespace gleaner::runtime
