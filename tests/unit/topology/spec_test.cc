// Tests that a SPEC gives the topology of its builder, and the message of each mistake in one.
#include "common/topology/spec.h"
#include "tests/unit/topology/errors.h"

#include <gmock/gmock.h>

#include "tests/unit/topology/same.h"

namespace gleaner::topology {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const LinkSpeed kSpeed = {.bits_per_second = 25e9, .uplink_bits_per_second = 10e9, .latency_seconds = 3e-6};

void expect_built(absl::string_view spec, const absl::StatusOr<Topology>& expected) {
  const auto made = topology_of_spec(spec, kSpeed);
  ASSERT_TRUE(made.ok()) << made.status();
  ASSERT_TRUE(expected.ok()) << expected.status();
  expect_same(*made, *expected);
}

std::string spec_error(absl::string_view spec) { return error_of(topology_of_spec(spec, kSpeed)); }

TEST(Spec, EachKind) {
  expect_built("star:5", star(5, kSpeed));
  expect_built("fat-tree:4", fat_tree(4, kSpeed));
  expect_built("bigraph:3x4", bigraph(3, 4, kSpeed));
  expect_built("racks:3x2", racks(3, 2, kSpeed));
}

TEST(Spec, BeginsWithAKnownKind) {
  for (const char* text : {"star:5", "fat-tree:", "bigraph:x", "racks:a:b"}) EXPECT_TRUE(is_spec(text)) << text;
  for (const char* text : {"", "star", "star.json", "stars:4", "./star:4", "C:star", ":4"})
    EXPECT_FALSE(is_spec(text)) << text;
}

TEST(Spec, NamesTheWrongPart) {
  EXPECT_THAT(spec_error("ring:5"), HasSubstr("expected star:N, fat-tree:K"));
  EXPECT_THAT(spec_error("star:"), AllOf(HasSubstr("the number of hosts is ''"), HasSubstr("star:16")));
  EXPECT_THAT(spec_error("star:4x4"), HasSubstr("expected one number; write for example star:16"));
  EXPECT_THAT(spec_error("bigraph:4"), HasSubstr("expected two numbers with an x between them"));
  EXPECT_THAT(spec_error("racks:2x3x4"), AllOf(HasSubstr("expected two numbers"), HasSubstr("racks:4x8")));
  EXPECT_THAT(spec_error("racks:2x"), HasSubstr("the number of hosts in a rack is ''"));
  EXPECT_THAT(spec_error("bigraph:-1x4"), HasSubstr("the number of hosts at a switch is '-1'"));
  for (const char* bad : {"fat-tree:+4", "fat-tree: 4", "fat-tree:4.0", "fat-tree:99999999999", "fat-tree:four"}) {
    EXPECT_THAT(spec_error(bad), AllOf(HasSubstr("the number of ports is "), HasSubstr("fat-tree:4"))) << bad;
  }
  EXPECT_THAT(spec_error("fat-tree:5"), AllOf(HasSubstr("'fat-tree:5'"), HasSubstr("an even number from 2 to 64")));
  EXPECT_THAT(spec_error("bigraph:2x3"), AllOf(HasSubstr("no two equal sides"), HasSubstr("bigraph:4x8")));
  EXPECT_THAT(spec_error("star:0"), HasSubstr("give 1 or more"));
}

}  // namespace
}  // namespace gleaner::topology
