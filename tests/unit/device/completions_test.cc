#include "comm-lib/device/completions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <thread>

#include "tests/unit/device/caller.h"

namespace gleaner::device {
namespace {

TEST(Completions, EveryThreadMayArrive) {
  constexpr size_t kThreads = 4;
  constexpr size_t kEach = 500;
  const auto completions = *Completions::create();
  std::vector<void*> entries;
  for (uint64_t tag = 0; tag < kThreads * kEach; ++tag) entries.push_back(completions->expect(tag));
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (size_t k = 0; k < kEach; ++k) Completions::arrive(entries[k * kThreads + i]);
    });
  }
  std::vector<uint64_t> tags = await(*completions, kThreads * kEach);
  for (std::thread& thread : threads) thread.join();
  std::sort(tags.begin(), tags.end());
  std::vector<uint64_t> expected(kThreads * kEach);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(tags, expected);
}

TEST(Completions, CancelledEntryNeverArrives) {
  const auto completions = *Completions::create();
  void* first = completions->expect(1);
  void* second = completions->expect(2);
  completions->cancel(first);
  EXPECT_EQ(completions->pending(), 1);
  Completions::arrive(second);
  EXPECT_THAT(await(*completions, 1), ::testing::ElementsAre(2));
  EXPECT_EQ(completions->pending(), 0);
}

TEST(Completions, TakeAppends) {
  const auto completions = *Completions::create();
  std::vector<uint64_t> tags = {9};
  completions->take(tags);
  EXPECT_THAT(tags, ::testing::ElementsAre(9));
  Completions::arrive(completions->expect(1));
  Completions::arrive(completions->expect(2));
  completions->take(tags);
  EXPECT_THAT(tags, ::testing::ElementsAre(9, 1, 2));
}

}  // namespace
}  // namespace gleaner::device
