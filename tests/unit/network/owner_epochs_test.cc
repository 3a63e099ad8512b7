#include "comm-lib/network/owner_epochs.h"

#include <gtest/gtest.h>

namespace gleaner::network {
namespace {

TEST(OwnerEpochs, TellOfEachLaterEpochOnce) {
  OwnerEpochs epochs;
  EXPECT_FALSE(epochs.note(false, 3, 3)) << "that plan is in force here";
  EXPECT_TRUE(epochs.note(false, 4, 3));
  EXPECT_FALSE(epochs.note(false, 4, 3));
  EXPECT_TRUE(epochs.note(true, 4, 3)) << "workers' summers count apart";
  EXPECT_FALSE(epochs.note(true, 3, 2)) << "a later epoch is known";
}

}  // namespace
}  // namespace gleaner::network
