#include "coordinator/service/port.h"

#include <gtest/gtest.h>

#include <future>

#include "absl/synchronization/mutex.h"
#include "coordinator/service/event_queue.h"
#include "tests/unit/coordinator_service/raw_member.h"

namespace gleaner::coordinator {
namespace {

// Such a stream was opened after the thread that reads streams had ended.
TEST(PortTest, CloseEndsAStreamThatIsNeverRead) {
  absl::Mutex mutex;
  std::shared_ptr<Stream> opened;
  auto port = Port::open({"127.0.0.1", 0}, std::nullopt, false, std::make_shared<EventQueue>(),
                         [&](std::shared_ptr<Stream> stream) {
                           absl::MutexLock lock(&mutex);
                           opened = std::move(stream);
                         });
  ASSERT_TRUE(port.ok()) << port.status();
  RawMember member((*port)->address());
  ASSERT_TRUE(eventually([&] {
    absl::MutexLock lock(&mutex);
    return opened != nullptr;
  }));
  auto closed = std::async(std::launch::async, [&] { port->reset(); });
  EXPECT_EQ(closed.wait_for(absl::ToChronoSeconds(kPatience)), std::future_status::ready);
  opened->end(absl::OkStatus());  // lets a port that still waits close, so that this test ends
}

}  // namespace
}  // namespace gleaner::coordinator
