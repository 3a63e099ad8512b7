#include "comm-lib/runtime/handles.h"

#include <gtest/gtest.h>

#include <thread>

namespace gleaner::runtime {
namespace {

TEST(Handles, WaitGivesTheOutcomeOnceAndForgetsTheHandle) {
  Handles handles;
  const uint64_t handle = handles.open();
  EXPECT_FALSE(handles.done(handle).value());
  handles.finish(handle, absl::UnavailableError("lost"));
  EXPECT_TRUE(handles.done(handle).value());
  EXPECT_TRUE(absl::IsUnavailable(handles.wait(handle, absl::ZeroDuration()).value().outcome));
  EXPECT_TRUE(absl::IsInvalidArgument(handles.wait(handle, absl::ZeroDuration()).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(handles.done(handle).status()));
}

TEST(Handles, TimeoutKeepsTheHandle) {
  Handles handles;
  const uint64_t handle = handles.open();
  EXPECT_TRUE(absl::IsDeadlineExceeded(handles.wait(handle, absl::Milliseconds(1)).status()));
  handles.finish(handle, absl::OkStatus());
  EXPECT_TRUE(handles.wait(handle, absl::ZeroDuration()).ok());
}

TEST(Handles, WaitEndsWhenAnotherThreadFinishes) {
  Handles handles;
  const uint64_t handle = handles.open();
  std::thread finisher([&] { handles.finish(handle, absl::OkStatus()); });
  EXPECT_TRUE(handles.wait(handle, absl::InfiniteDuration()).value().outcome.ok());
  finisher.join();
}

TEST(Handles, NextDoneReturnsEachHandleOnceInOrderAndSkipsThoseWaitedFor) {
  Handles handles;
  const uint64_t first = handles.open();
  const uint64_t second = handles.open();
  const uint64_t third = handles.open();
  handles.finish(second, absl::OkStatus());
  handles.finish(first, absl::OkStatus());
  handles.finish(third, absl::OkStatus());
  ASSERT_TRUE(handles.wait(second, absl::ZeroDuration()).ok());
  EXPECT_EQ(handles.next_done(absl::ZeroDuration()).value(), first);
  EXPECT_EQ(handles.next_done(absl::ZeroDuration()).value(), third);
  EXPECT_TRUE(absl::IsDeadlineExceeded(handles.next_done(absl::Milliseconds(1)).status()));
}

TEST(Handles, CloseFinishesTheRestAndEndsNextDone) {
  Handles handles;
  const uint64_t handle = handles.open();
  EXPECT_FALSE(handles.wait_all(absl::ZeroDuration()));
  handles.close(absl::UnavailableError("summer/1 is lost"));
  EXPECT_TRUE(handles.wait_all(absl::ZeroDuration()));
  EXPECT_EQ(handles.next_done(absl::InfiniteDuration()).value(), handle);
  EXPECT_TRUE(absl::IsFailedPrecondition(handles.next_done(absl::InfiniteDuration()).status()));
  EXPECT_EQ(handles.wait(handle, absl::ZeroDuration()).value().outcome.message(), "summer/1 is lost");
}

}  // namespace
}  // namespace gleaner::runtime
