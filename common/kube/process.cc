#include "common/kube/process.h"

#include <utility>  // missing in Boost 1.74's own includes

#include <pplx/threadpool.h>

#include <csignal>
#include <cstdlib>
#include <memory>
#include <stdexcept>

#include "absl/synchronization/mutex.h"

namespace gleaner::kube {
namespace {

constexpr uint32_t kThreads = 4;

struct Parking {
  absl::Mutex mutex;
  uint32_t parked = 0;
  bool over = false;
};

}  // namespace

void prepare_process() {
  setenv("SSL_CERT_FILE", "/dev/null", 1);
  setenv("SSL_CERT_DIR", "/nonexistent", 1);
  // The pool's threads start here, before EndSignals blocks its signals, and would otherwise take one of them.
  sigset_t ends, before;
  sigemptyset(&ends);
  for (const int signal : {SIGTERM, SIGINT}) sigaddset(&ends, signal);
  pthread_sigmask(SIG_BLOCK, &ends, &before);
  try {
    crossplat::threadpool::initialize_with_threads(kThreads);
  } catch (const std::runtime_error&) {
    // Called a second time: the pool exists already, with as many threads.
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void drain_cpprest_threads(absl::Duration timeout) {
  static absl::Mutex one_at_a_time;
  absl::MutexLock alone(&one_at_a_time);
  auto& pool = crossplat::threadpool::shared_instance().service();
  const auto parking = std::make_shared<Parking>();
  for (uint32_t i = 0; i < kThreads; ++i) {
    pool.post([parking] {
      absl::MutexLock lock(&parking->mutex);
      ++parking->parked;
      parking->mutex.Await(absl::Condition(&parking->over));
    });
  }
  const auto all_parked = [&parking] { return parking->parked == kThreads; };
  absl::MutexLock lock(&parking->mutex);
  if (parking->mutex.AwaitWithTimeout(absl::Condition(&all_parked), timeout)) pool.poll();
  parking->over = true;
}

}  // namespace gleaner::kube
