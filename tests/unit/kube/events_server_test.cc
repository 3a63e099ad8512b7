// Tests of Events on a real API server: kubectl describe finds them, repetitions are counted, and they are kept while
// the server is away.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/kube/events.h"
#include "common/kube/object.h"
#include "tests/unit/kube/api_server.h"

namespace gleaner::kube {
namespace {

class EventsTest : public ServerTest {
 protected:
  ObjectReference job() const { return {"gleaner.dev/v1alpha1", "TrainingJob", ns_, "digits", "some-uid"}; }
  // Lists Events as kubectl describe does.
  std::vector<Object> events_of_job() {
    const auto list = client().list(
        events(), {.ns = ns_,
                   .fields = absl::StrCat("involvedObject.name=digits,involvedObject.namespace=", ns_,
                                          ",involvedObject.kind=TrainingJob,involvedObject.uid=some-uid")});
    EXPECT_TRUE(list.ok()) << list.status();
    return list.ok() ? list->items : std::vector<Object>();
  }
  bool shows(const std::string& reason, int count) {
    for (const Object& event : events_of_job()) {
      if (text_at(event, {"reason"}) == reason && event.value("count", 0) == count) return true;
    }
    return false;
  }
};

TEST_F(EventsTest, RepetitionsAreCountedAndTheLastEventsAreWrittenAtTheEnd) {
  auto recorder = EventRecorder::start(env(), client(), "gleaner-operator", "operator-0");
  recorder->normal(job(), "Started", "4 workers");
  EXPECT_TRUE(eventually([&] { return shows("Started", 1); }));
  for (int i = 0; i < 4; ++i) recorder->normal(job(), "Started", "4 workers");
  recorder->warning(job(), "WorkerFailed", "worker 2 exited with 1");
  recorder.reset();
  EXPECT_TRUE(shows("Started", 5));
  EXPECT_TRUE(shows("WorkerFailed", 1));
  const std::vector<Object> events = events_of_job();
  ASSERT_EQ(events.size(), 2U);
  for (const Object& event : events) {
    EXPECT_EQ(text_at(event, {"source", "component"}), "gleaner-operator");
    EXPECT_EQ(text_at(event, {"type"}), text_at(event, {"reason"}) == "Started" ? "Normal" : "Warning");
  }
}

TEST_F(EventsTest, WaitForAServerThatIsAwayAndEndInTimeWithoutIt) {
  auto recorder = EventRecorder::start(env(), client(), "gleaner-operator", "operator-0");
  freeze_server();
  recorder->normal(job(), "Suspended", "by its user");
  absl::SleepFor(absl::Milliseconds(200));
  server().command("resume-apiserver");
  EXPECT_TRUE(eventually([&] { return shows("Suspended", 1); }));

  freeze_server();
  recorder->normal(job(), "Resumed", "by its user");
  recorder.reset();  // the time limit of the test is the deadline
  server().command("resume-apiserver");
}

}  // namespace
}  // namespace gleaner::kube
