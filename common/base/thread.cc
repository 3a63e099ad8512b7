#include "common/base/thread.h"

#include <pthread.h>

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "common/base/limits.h"

namespace gleaner {
namespace {

ptrdiff_t threads_of_this_process() {
  std::error_code error;
  return std::distance(std::filesystem::directory_iterator("/proc/self/task", error), {});
}

// Waits until the kernel has released threads that were joined, so that they no longer count; for a second at most.
void wait_for_release(ptrdiff_t threads) {
  const absl::Time end = absl::Now() + absl::Seconds(1);
  while (threads_of_this_process() > threads && absl::Now() < end) absl::SleepFor(absl::Milliseconds(1));
}

}  // namespace

void name_this_thread(const char* name) { pthread_setname_np(pthread_self(), name); }

absl::StatusOr<std::thread> start_thread(const char* name, std::function<void()> body) {
  try {
    return std::thread([name, body = std::move(body)] {
      name_this_thread(name);
      body();
    });
  } catch (const std::system_error& error) {
    return exhausted("can't start a thread", error.code().value());
  }
}

absl::Status check_threads(int count, absl::string_view user) {
  const ptrdiff_t before = threads_of_this_process();
  absl::Notification enough;
  std::vector<std::thread> threads;
  absl::Status status;
  while (status.ok() && static_cast<int>(threads.size()) < count) {
    auto thread = start_thread("gln-check", [&enough] { enough.WaitForNotification(); });
    status = thread.status();
    if (thread.ok()) threads.push_back(*std::move(thread));
  }
  if (!status.ok()) {
    status = exhausted(
        absl::StrCat(user, " needs ", count, " threads, and only ", threads.size(), " more can be started"), EAGAIN);
  }
  enough.Notify();
  for (std::thread& thread : threads) thread.join();
  wait_for_release(before);
  return status;
}

}  // namespace gleaner
