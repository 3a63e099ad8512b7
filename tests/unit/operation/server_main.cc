// Tests against an API server.
#include <gtest/gtest.h>

#include "common/kube/process.h"
#include "tests/unit/kube/api_server.h"

int main(int argc, char** argv) {
  gleaner::kube::prepare_process();
  testing::InitGoogleTest(&argc, argv);
  testing::AddGlobalTestEnvironment(gleaner::kube::server_environment());
  return RUN_ALL_TESTS();
}
