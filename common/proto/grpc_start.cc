#include "common/proto/grpc_start.h"

#include <grpc/grpc.h>
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/base/const_init.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "common/base/limits.h"
#include "common/base/status_macros.h"
#include "common/base/thread.h"

namespace gleaner::proto {
namespace {

// The names, as far as the kernel keeps them, of the threads of gRPC 1.51 that grpc_init() and the first channel start.
constexpr absl::string_view kThreads[] = {"default-executo", "resolver-execut", "grpc_global_tim", "timer_manager",
                                          "event_engine"};

constexpr absl::Duration kNamingTime = absl::Seconds(5);

int processors() { return static_cast<int>(::sysconf(_SC_NPROCESSORS_CONF)); }

// Returns the names of all threads of this process.
std::vector<std::string> threads() {
  std::vector<std::string> names;
  std::error_code ended;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", ended)) {
    std::ifstream file(task.path() / "comm");
    std::getline(file, names.emplace_back());
  }
  return names;
}

// Returns whether gRPC has its threads. A thread gets its name a moment after its start. Other versions of gRPC may
// name them differently, so this assumes that those have their threads.
bool has_started() {
  if (!absl::StartsWith(grpc::Version(), "1.51.")) return true;
  for (const absl::Time end = absl::Now() + kNamingTime; absl::Now() < end; absl::SleepFor(absl::Milliseconds(1))) {
    const std::vector<std::string> names = threads();
    const auto is_there = [&](absl::string_view name) { return absl::c_linear_search(names, name); };
    if (absl::c_all_of(kThreads, is_there)) return true;
  }
  return false;
}

// One of each name; "event_engine" is a pool.
int threads_of_the_process() { return static_cast<int>(std::size(kThreads)) - 1 + std::clamp(processors(), 2, 32); }

// Makes what the first channel would make, and keeps it. The channel never connects.
void start() {
  ::grpc_init();
  static const auto& channel = *new auto(grpc::CreateChannel("127.0.0.1:1", grpc::InsecureChannelCredentials()));
  static_cast<void>(channel);
}

}  // namespace

int channel_threads() { return 2; }  // one more of "grpc_global_timer", and one of "event_engine" that polls

int server_threads() { return channel_threads() + std::clamp(processors() / 2, 2, 16); }

absl::Status start_grpc(int more, absl::string_view user) {
  static absl::Mutex mutex(absl::kConstInit);
  static bool is_started = false;
  absl::MutexLock lock(&mutex);
  GLN_RETURN_IF_ERROR(check_threads(more + (is_started ? 0 : threads_of_the_process()), user));
  if (!std::exchange(is_started, true)) start();
  // Another process of this user, or of this container, may have taken the place of a thread after the check.
  if (has_started()) return absl::OkStatus();
  return exhausted(absl::StrCat(user, " lacks threads that gRPC could not start"), EAGAIN);
}

}  // namespace gleaner::proto
