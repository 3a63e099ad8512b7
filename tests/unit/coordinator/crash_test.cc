// Random tests in which coordinators are lost, streams break and members leave at any time. GLEANER_SEED=N repeats one
// of them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "tests/unit/coordinator/fleet.h"

namespace gleaner::coordinator {
namespace {

class Story {
 public:
  explicit Story(uint64_t seed) : dice_(seed), fleet_(options()) {}

  void run() {
    const uint32_t tensors = 1 + below(6);
    uint32_t declared = 0;
    for (uint32_t event = 0; event < 400 && !testing::Test::HasFailure(); ++event) {
      const uint32_t what = below(100);
      if (what < 2) {
        die();
      } else if (what < 4) {
        break_one();
      } else if (what < 20) {
        connect_one();
      } else if (what < 24 && declared < tensors) {
        fleet_.declare_all(absl::StrCat("t", declared++));
      } else {
        deliver_one();
      }
      ASSERT_EQ(fleet_.outcome(), "none");
    }
    while (declared < tensors) fleet_.declare_all(absl::StrCat("t", declared++));
    come_to_rest();
    for (uint32_t seat = 0; seat < ranks(); ++seat) {
      for (uint32_t i = 0; i < tensors; ++i) EXPECT_TRUE(fleet_.has_tensor(seat, absl::StrCat("t", i)));
    }
    end();
  }

  int deaths = 0;

 private:
  Options options() {
    Options options;
    options.workers = 1 + below(4);
    options.summers = below(3);
    options.local_ranks = 1 + below(2);
    options.return_timeout = options.start_timeout = absl::Hours(1);
    return options;
  }
  uint32_t below(uint32_t bound) { return static_cast<uint32_t>(dice_() % bound); }
  uint32_t ranks() const { return fleet_.options_.workers * fleet_.options_.local_ranks; }
  uint32_t somebody() { return below(static_cast<uint32_t>(fleet_.members.size())); }

  void die() {
    // Some messages in flight to members still arrive.
    for (uint32_t seat = 0; seat < fleet_.members.size(); ++seat) {
      for (uint32_t i = below(4); i > 0; --i) fleet_.deliver_to(seat);
    }
    fleet_.restart();
    ++deaths;
  }
  void break_one() {
    if (const uint32_t seat = somebody(); fleet_.members[seat].stream != 0) fleet_.cut(seat);
  }
  void connect_one() {
    const uint32_t seat = somebody();
    if (fleet_.members[seat].stream == 0 && !fleet_.members[seat].over) fleet_.connect(seat);
  }
  void deliver_one() {
    const uint32_t seat = somebody();
    if (below(2) == 0) {
      fleet_.deliver_to(seat);
    } else {
      fleet_.deliver_from(seat);
    }
  }
  void come_to_rest() {
    for (int i = 0; i < 3; ++i) {
      fleet_.connect_all();
      fleet_.settle();
      // The coordinator does not wait for summers that it has rejected; they join as new members.
      if (fleet_.core->phase() == Phase::kReattaching) fleet_.pass(absl::Seconds(7));
    }
    fleet_.settle();
    EXPECT_EQ(fleet_.outcome(), "none");
  }
  // All members leave, some of them while there is no coordinator. In that case the operator reports that their pods
  // have ended.
  void end() {
    for (uint32_t seat = 0; seat < ranks(); ++seat) {
      if (below(6) == 0) die();
      if (below(2) == 0) come_to_rest();
      fleet_.leave(seat);
      if (below(2) == 0) fleet_.settle();
    }
    for (uint32_t worker = 0; worker < fleet_.options_.workers; ++worker) {
      fleet_.ended(worker * fleet_.options_.local_ranks);
      if (below(6) == 0) {
        die();
        for (uint32_t again = 0; again <= worker; ++again) fleet_.ended(again * fleet_.options_.local_ranks);
      }
    }
    EXPECT_EQ(fleet_.outcome(), "well");
    for (uint32_t seat = ranks(); seat < fleet_.members.size(); ++seat) {
      if (fleet_.members[seat].stream == 0) fleet_.connect(seat);
    }
    fleet_.settle();
    for (uint32_t seat = ranks(); seat < fleet_.members.size(); ++seat) EXPECT_TRUE(fleet_.members[seat].over);
  }

  std::mt19937_64 dice_;
  Fleet fleet_;
};

TEST(Crash, JobsEndWellWheneverCoordinatorsDie) {
  const char* const given = std::getenv("GLEANER_SEED");
  const uint64_t first = given == nullptr ? 1 : std::strtoull(given, nullptr, 10);
  const uint64_t count = given == nullptr ? 1500 : 1;
  int deaths = 0;
  for (uint64_t seed = first; seed < first + count && !HasFailure(); ++seed) {
    SCOPED_TRACE(absl::StrCat("GLEANER_SEED=", seed));
    Story story(seed);
    story.run();
    deaths += story.deaths;
  }
  if (given == nullptr) {
    EXPECT_GT(deaths, 5000);
  }
}

}  // namespace
}  // namespace gleaner::coordinator
