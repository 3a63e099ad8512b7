#include "common/base/listening.h"

#include <gmock/gmock.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <iterator>
#include <thread>

#include "tests/loopback6.h"

namespace gleaner {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(Listening, TakesNumbersAndNamesAndAnyPort) {
  for (const char* host : {"127.0.0.1", "localhost", "0.0.0.0"}) {
    const auto socket = listen_on({host, 0});
    ASSERT_TRUE(socket.ok()) << socket.status();
    EXPECT_NE(local_address(*socket)->port, 0) << host;
  }
}

TEST(Listening, TakesIPv6) {
  SKIP_WITHOUT_LOOPBACK6();
  for (const char* host : {"::1", "::"}) {
    const auto socket = listen_on({host, 0});
    ASSERT_TRUE(socket.ok()) << socket.status();
    EXPECT_EQ(local_address(*socket)->host, host);
  }
}

TEST(Listening, ErrorsNameTheReason) {
  const auto first = listen_on({"127.0.0.1", 0});
  const absl::Status used = listen_on({"127.0.0.1", local_address(*first)->port}).status();
  EXPECT_TRUE(absl::IsAlreadyExists(used));
  EXPECT_THAT(std::string(used.message()), HasSubstr("the port is in use"));
  const absl::Status foreign = listen_on({"192.0.2.1", 0}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(foreign));
  EXPECT_THAT(std::string(foreign.message()), AllOf(HasSubstr("192.0.2.1:0"), HasSubstr("no such address")));
  EXPECT_THAT(std::string(listen_on({"no-such-name.invalid", 0}).status().message()),
              AllOf(HasSubstr("can't find host 'no-such-name.invalid': this machine's name service"),
                    HasSubstr("give a host's name, or an address")));
}

TEST(Listening, HostsWrittenAsAddressesAreNotLookedUp) {
  for (const char* host : {"10.0.0.300", "1.2.3.4.5", "::zz"}) {
    const absl::Status status = listen_on({host, 0}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(host), HasSubstr(" is no IPv"), HasSubstr("give a host's name, or an address")));
  }
  EXPECT_TRUE(listen_on({"127.1", 0}).ok());
}

// Makes socket() fail in this thread as on a kernel without IPv6.
bool switch_ipv6_off() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_socket, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAFNOSUPPORT),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{std::size(program), program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST(Listening, AKernelWithoutIPv6IsNamed) {
  absl::Status status;
  bool is_off = false;
  std::thread([&] {
    is_off = switch_ipv6_off();
    status = listen_on({"::1", 0}).status();
  }).join();
  if (!is_off) GTEST_SKIP() << "this machine allows no system call filter";
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("[::1]:0: this machine has no such address"), HasSubstr("give one of its addresses")));
}

}  // namespace
}  // namespace gleaner
