// Tests that the counters of each exchange reach its metrics.
#include "comm-lib/network/exchange_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

namespace gleaner::network {
namespace {

using ::testing::HasSubstr;

class ExchangeMetricsTest : public testing::Test {
 protected:
  std::string text() const { return prometheus::TextSerializer().Serialize(registry_.Collect()); }

  prometheus::Registry registry_;
  ExchangeMetrics metrics_{registry_, {}};
};

TEST_F(ExchangeMetricsTest, PushesFollowTheSession) {
  session::Counters counters;
  counters.pushed_bytes = 1;
  counters.repeated_pushes = 2;
  counters.results = 3;
  counters.deferred = 4;
  counters.stalls = 5;
  counters.moved = 6;
  counters.handed = 7;
  counters.retained_bytes = 8;
  counters.outstanding_bytes = 9;
  counters.window_bytes = 10;
  metrics_.pushes.update(counters);
  EXPECT_THAT(text(), HasSubstr("gleaner_worker_pushed_bytes_total 1\n"));
  EXPECT_THAT(text(), HasSubstr("gleaner_worker_repeated_pushes_total 2\n"));
  EXPECT_THAT(text(), HasSubstr("gleaner_worker_results_total 3\n"));
  EXPECT_THAT(text(), HasSubstr("gleaner_worker_deferred_pushes_total 4\n"));
  EXPECT_THAT(text(), HasSubstr("gleaner_worker_window_stalls_total 5\n"));
  EXPECT_THAT(text(), HasSubstr("gleaner_worker_moved_partitions_total 6\n"));
  EXPECT_THAT(text(), HasSubstr("gleaner_worker_handed_results_total 7\n"));
  EXPECT_THAT(text(), HasSubstr("gleaner_worker_retained_bytes 8\n"));
  EXPECT_THAT(text(), HasSubstr("gleaner_worker_outstanding_bytes 9\n"));
  EXPECT_THAT(text(), HasSubstr("gleaner_worker_window_bytes 10\n"));
}

TEST_F(ExchangeMetricsTest, SlicesFollowTheExecutor) {
  executor::Counters counters;
  counters.slices = 1;
  counters.slice_bytes = 2;
  counters.repeated_slices = 3;
  counters.duplicate_slices = 4;
  counters.results = 5;
  counters.unconfirmed_bytes = 6;
  counters.window_bytes = 7;
  metrics_.slices.update(counters);
  EXPECT_THAT(text(), HasSubstr("gleaner_worker_slices_total 1\n"));
  EXPECT_THAT(text(), HasSubstr("gleaner_worker_slice_bytes_total 2\n"));
  EXPECT_THAT(text(), HasSubstr("gleaner_worker_repeated_slices_total 3\n"));
  EXPECT_THAT(text(), HasSubstr("gleaner_worker_duplicate_slices_total 4\n"));
  EXPECT_THAT(text(), HasSubstr("gleaner_worker_scheduled_results_total 5\n"));
  EXPECT_THAT(text(), HasSubstr("gleaner_worker_unconfirmed_slice_bytes 6\n"));
  EXPECT_THAT(text(), HasSubstr("gleaner_worker_slice_window_bytes 7\n"));
  EXPECT_THAT(text(), HasSubstr("gleaner_worker_results_total 0\n")) << "the session's results count apart";
}

}  // namespace
}  // namespace gleaner::network
