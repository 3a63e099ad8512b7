// Tests of the I/O thread's loop: the order of its work, and the length of its waits.
#include "comm-lib/runtime/io_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "absl/synchronization/notification.h"

namespace gleaner::runtime {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::SizeIs;
using Load = IoLoop::Load;

bool is_free(absl::Mutex& mutex) {
  if (!mutex.TryLock()) return false;
  mutex.Unlock();
  return true;
}

// Work without I/O: has the given load, round after round, and takes 20 ms of the clock for each wait. Ends the loop's
// waits when it is out of rounds.
class Rounds final : public IoLoop::Work, private Clock {
 public:
  explicit Rounds(std::vector<Load> loads) : loads_(std::move(loads)), loop(this, absl::Milliseconds(250), this) {}
  ~Rounds() override { loop.stop(); }

  // Runs all rounds.
  void run() {
    ASSERT_EQ(loop.start(), absl::OkStatus());
    over_.WaitForNotification();
    loop.stop();
  }
  const std::vector<absl::Duration>& waits() const { return waits_; }
  const std::vector<bool>& asleep() const { return asleep_; }
  // Whether the turn was free after each round, and in each wait.
  const std::vector<bool>& turn_was_free() const { return turn_was_free_; }
  // The events in order: r: a round, m: a message, a: after the round, w: a wait.
  std::string log;

 private:
  Load run_round() override {
    log += 'r';
    loop.drain();
    return round_ < loads_.size() ? loads_[round_] : Load::kIdle;
  }
  void after_round() override {
    log += 'a';
    note_turn();
  }
  void wait_for_work(absl::Duration timeout) override {
    log += 'w';
    note_turn();
    if (round_ < loads_.size()) {
      waits_.push_back(timeout);
      asleep_.push_back(loop.is_asleep());
    }
    now_ += absl::Milliseconds(20);
    if (++round_ < loads_.size() || over_.HasBeenNotified()) return;
    over_.Notify();
    woken_.WaitForNotification();
  }
  void wake() override {
    if (!woken_.HasBeenNotified()) woken_.Notify();
  }
  absl::Duration since_start() const override { return now_; }
  absl::Time now() const override { return absl::UnixEpoch() + now_; }

  void note_turn() { turn_was_free_.push_back(is_free(loop.turn())); }

  const std::vector<Load> loads_;
  size_t round_ = 0;
  absl::Duration now_ = absl::Hours(1);
  std::vector<absl::Duration> waits_;
  std::vector<bool> asleep_;
  std::vector<bool> turn_was_free_;
  absl::Notification over_;
  absl::Notification woken_;

 public:
  IoLoop loop;
};

TEST(IoLoop, DoesNotWaitWhileThereIsWork) {
  Rounds rounds({Load::kWork, Load::kWork, Load::kWork, Load::kWork, Load::kWork});
  rounds.run();
  EXPECT_THAT(rounds.waits(), Each(absl::ZeroDuration()));
  EXPECT_THAT(rounds.asleep(), Each(false));
}

TEST(IoLoop, SleepsWhenNothingWasInFlightForAWhile) {
  Rounds rounds({Load::kInFlight, Load::kIdle, Load::kIdle, Load::kIdle, Load::kInFlight});
  rounds.run();
  const absl::Duration brief = absl::Milliseconds(5);
  EXPECT_THAT(rounds.waits(), ElementsAre(brief, brief, brief, absl::Milliseconds(250), brief));
  EXPECT_THAT(rounds.asleep(), ElementsAre(false, false, false, true, false));
}

TEST(IoLoop, HoldsTheTurnOnlyDuringARound) {
  Rounds rounds({Load::kInFlight, Load::kIdle});
  bool free_in_message = true;
  rounds.loop.post([&] {
    rounds.log += 'm';
    free_in_message = is_free(rounds.loop.turn());
  });
  rounds.run();
  EXPECT_EQ(rounds.log.substr(0, 7), "rmawraw");
  EXPECT_FALSE(free_in_message);
  EXPECT_THAT(rounds.turn_was_free(), Each(true));
}

TEST(IoLoop, RunsMessagesInOrderAlsoThoseBeforeAStop) {
  Rounds rounds({Load::kIdle});
  std::vector<int> ran;
  rounds.loop.post([&] {
    ran.push_back(1);
    rounds.loop.post([&] { ran.push_back(3); });  // runs at the next drain(), after the stop
  });
  rounds.loop.post([&] { ran.push_back(2); });
  EXPECT_FALSE(rounds.loop.nothing_posted());
  rounds.run();
  EXPECT_THAT(ran, ElementsAre(1, 2, 3));
  rounds.loop.post([&] { ran.push_back(4); });
  EXPECT_THAT(ran, SizeIs(3)) << "posted after the stop";
}

}  // namespace
}  // namespace gleaner::runtime
