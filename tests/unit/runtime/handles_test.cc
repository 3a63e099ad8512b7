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
  absl::Status outcome;
  ASSERT_TRUE(handles.wait(handle, absl::ZeroDuration(), &outcome).ok());
  EXPECT_TRUE(absl::IsUnavailable(outcome));
  EXPECT_TRUE(absl::IsInvalidArgument(handles.wait(handle, absl::ZeroDuration(), &outcome)));
  EXPECT_TRUE(absl::IsInvalidArgument(handles.done(handle).status()));
}

TEST(Handles, TimeoutKeepsTheHandle) {
  Handles handles;
  const uint64_t handle = handles.open();
  absl::Status outcome;
  EXPECT_TRUE(absl::IsDeadlineExceeded(handles.wait(handle, absl::Milliseconds(1), &outcome)));
  handles.finish(handle, absl::OkStatus());
  EXPECT_TRUE(handles.wait(handle, absl::ZeroDuration(), &outcome).ok());
}

TEST(Handles, WaitEndsWhenAnotherThreadFinishes) {
  Handles handles;
  const uint64_t handle = handles.open();
  std::thread finisher([&] { handles.finish(handle, absl::OkStatus()); });
  absl::Status outcome = absl::UnknownError("unset");
  EXPECT_TRUE(handles.wait(handle, absl::InfiniteDuration(), &outcome).ok());
  EXPECT_TRUE(outcome.ok());
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
  absl::Status outcome;
  ASSERT_TRUE(handles.wait(second, absl::ZeroDuration(), &outcome).ok());
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
  absl::Status outcome;
  ASSERT_TRUE(handles.wait(handle, absl::ZeroDuration(), &outcome).ok());
  EXPECT_EQ(outcome.message(), "summer/1 is lost");
}

}  // namespace
}  // namespace gleaner::runtime
