#include "summation-service/service/background.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace gleaner::service {
namespace {

// The argument of sched_setattr(2), which the C library does not declare.
struct Attributes {
  uint32_t size = sizeof(Attributes);
  uint32_t policy = SCHED_OTHER;
  uint64_t flags = 0;
  int32_t nice = 0;
  uint32_t priority = 0;
  uint64_t runtime = 0;  // time slice in nanoseconds
  uint64_t deadline = 0;
  uint64_t period = 0;
};

constexpr uint64_t kLeastRuntime = 100'000;

}  // namespace

void take_short_turns() {
  Attributes attributes;
  attributes.nice = getpriority(PRIO_PROCESS, 0);
  attributes.runtime = kLeastRuntime;
  syscall(SYS_sched_setattr, 0, &attributes, 0U);
}

void run_in_background() {
  // A separate call, because sched_setattr() accepts a time slice only with SCHED_OTHER. The slice stays in force.
  take_short_turns();
  const sched_param none{};
  sched_setscheduler(0, SCHED_IDLE, &none);
}

}  // namespace gleaner::service
