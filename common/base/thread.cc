#include "common/base/thread.h"

#include <pthread.h>

namespace gleaner {

void name_this_thread(const char* name) { pthread_setname_np(pthread_self(), name); }

}  // namespace gleaner
