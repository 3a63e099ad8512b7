#include "common/transport/endpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace gleaner::transport {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Endpoint, RoundTripsThroughItsText) {
  for (const std::string text : {"tcp://10.0.0.1:7000", "tcp://[fe80::1]:80", "tcp://gpu-3.cluster:1",
                                 "rdma://10.0.0.1:7000", "shm://0f3e-11.1a.2b/dev/shm/gleaner-77.sock"}) {
    const auto endpoint = Endpoint::parse(text);
    ASSERT_TRUE(endpoint.ok()) << endpoint.status();
    EXPECT_EQ(endpoint->to_string(), text);
  }
  const Endpoint shm = Endpoint::parse("shm://here.1/dev/shm/a").value();
  EXPECT_EQ(shm, (Endpoint{Kind::kShm, "here.1", {"/dev/shm/a", 0}}));
}

TEST(Endpoint, MalformedEndpointsAreRefusedWithAReason) {
  const auto why = [](const std::string& text) { return std::string(Endpoint::parse(text).status().message()); };
  EXPECT_THAT(why(""), HasSubstr("expected KIND://WHERE"));
  EXPECT_THAT(why("10.0.0.1:7000"), HasSubstr("expected KIND://WHERE"));
  EXPECT_THAT(why("udp://10.0.0.1:7000"), HasSubstr("'udp' is not a transport; expected shm, rdma or tcp"));
  EXPECT_THAT(why("inproc://x:1"), HasSubstr("'inproc' is not a transport")) << "only its own process can use it";
  EXPECT_THAT(why("tcp://10.0.0.1"), HasSubstr("is not an address"));
  EXPECT_THAT(why("rdma://10.0.0.1:0"), HasSubstr("port 0"));
  EXPECT_THAT(why("shm:///dev/shm/a"), HasSubstr("expected shm://HOST/PATH"));
  EXPECT_THAT(why("shm://host"), HasSubstr("expected shm://HOST/PATH"));
  EXPECT_THAT(why("shm://host/dir/"), HasSubstr("expected shm://HOST/PATH"));
  EXPECT_THAT(why("shm://host/a b"), HasSubstr("expected shm://HOST/PATH"));
  EXPECT_THAT(why("shm://host/" + std::string(200, 'a')), HasSubstr("at most 107 bytes"));
}

TEST(Endpoint, KindsOfALaterVersionAreSkipped) {
  const auto endpoints = parse_endpoints({"quic://h:1", "tcp://h:2", "nonsense"});
  EXPECT_THAT(endpoints, ElementsAre(Endpoint{Kind::kTcp, "", {"h", 2}}));
  EXPECT_THAT(to_texts(endpoints), ElementsAre("tcp://h:2"));
}

TEST(DirectoryId, DoesNotDependOnThePath) {
  char name[] = "/tmp/gleaner-directory-XXXXXX";
  const std::filesystem::path directory = mkdtemp(name);
  std::filesystem::create_directory(directory / "real");
  std::filesystem::create_directory(directory / "other");
  std::filesystem::create_directory_symlink(directory / "real", directory / "alias");
  const auto id = [&](const char* which) { return directory_id(directory / which); };
  ASSERT_TRUE(id("real").ok()) << id("real").status();
  EXPECT_EQ(*id("real"), *id("alias"));
  EXPECT_NE(*id("real"), *id("other"));
  EXPECT_TRUE(Endpoint::parse("shm://" + *id("real") + "/a").ok()) << *id("real");
  EXPECT_TRUE(absl::IsNotFound(id("gone").status())) << id("gone").status();
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace gleaner::transport
