// A stand-in for NVIDIA's management library (NVML), since the tests run on machines without a GPU. It has the
// functions that the agent calls, with the layout of the published header, and reports two GPUs. With
// GLEANER_FAKE_NVML=broken it reports that it can't reach a driver.
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kDriverNotLoaded = 9;

bool broken() {
  const char* how = std::getenv("GLEANER_FAKE_NVML");
  return how != nullptr && std::strcmp(how, "broken") == 0;
}

int initialized = 0;

}  // namespace

extern "C" {

__attribute__((visibility("default"))) int nvmlInit_v2() {
  if (broken()) return kDriverNotLoaded;
  ++initialized;
  return 0;
}
__attribute__((visibility("default"))) int nvmlShutdown() {
  --initialized;
  return 0;
}
__attribute__((visibility("default"))) const char* nvmlErrorString(int) { return "Driver Not Loaded"; }
__attribute__((visibility("default"))) int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return initialized == 1 ? 0 : 1;
}
__attribute__((visibility("default"))) int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = reinterpret_cast<void*>(static_cast<size_t>(index) + 1);
  return 0;
}
__attribute__((visibility("default"))) int nvmlDeviceGetUUID(void* device, char* text, unsigned bytes) {
  std::snprintf(text, bytes, "GPU-fake-%zu", reinterpret_cast<size_t>(device));
  return 0;
}
__attribute__((visibility("default"))) int nvmlDeviceGetName(void*, char* text, unsigned bytes) {
  std::snprintf(text, bytes, "Fake H100");
  return 0;
}
__attribute__((visibility("default"))) int nvmlDeviceGetPciInfo_v3(void* device, void* info) {
  // The layout is char busIdLegacy[16], five unsigned, char busId[32].
  std::memset(info, 'x', 16 + 20);
  const char* address = reinterpret_cast<size_t>(device) == 1 ? "00000000:D9:00.0" : "00000000:19:00.0";
  std::snprintf(static_cast<char*>(info) + 36, 32, "%s", address);
  return 0;
}
__attribute__((visibility("default"))) int nvmlDeviceGetMemoryInfo(void*, void* info) {
  auto* bytes = static_cast<unsigned long long*>(info);
  bytes[0] = 85899345920ULL, bytes[1] = 1, bytes[2] = 2;
  return 0;
}

}  // extern "C"
