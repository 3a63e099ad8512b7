#include "common/kube/process.h"

#include <utility>  // Boost 1.74 forgets it

#include <pplx/threadpool.h>

#include <cstdlib>
#include <stdexcept>

namespace gleaner::kube {

void prepare_process() {
  setenv("SSL_CERT_FILE", "/dev/null", 1);
  setenv("SSL_CERT_DIR", "/nonexistent", 1);
  try {
    crossplat::threadpool::initialize_with_threads(4);
  } catch (const std::runtime_error&) {
    // Called twice: the pool is there already, and with 4 threads.
  }
}

}  // namespace gleaner::kube
