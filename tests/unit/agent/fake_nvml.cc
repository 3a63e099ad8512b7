// A stand-in for NVIDIA's management library (NVML), since the tests run on machines without a GPU. It has the
// functions that the agent calls, with the layout of the published header, and reports two GPUs. The variable
// GLEANER_FAKE_NVML has words FUNCTION=ERROR and FUNCTION@INDEX=ERROR, which let a function fail, or fail for one GPU:
// "Init_v2=9 UUID@1=15". With the macro GLEANER_FAKE_OLD_NVML the library lacks functions, as an old one may.
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

int initialized = 0;

// Returns the error that the variable tells the function to return; 0: none. `word` is "Init_v2=" or "UUID@1=".
int injected(const char* word) {
  const char* all = std::getenv("GLEANER_FAKE_NVML");
  const char* found = all == nullptr ? nullptr : std::strstr(all, word);
  return found == nullptr ? 0 : std::atoi(found + std::strlen(word));
}

size_t index_of(const void* device) { return reinterpret_cast<size_t>(device) - 1; }

int injected(const char* function, size_t index) {
  char word[64];
  std::snprintf(word, sizeof(word), "%s@%zu=", function, index);
  return injected(word);
}

}  // namespace

#define EXPORTED __attribute__((visibility("default")))

extern "C" {

EXPORTED int nvmlInit_v2() {
  if (const int error = injected("Init_v2="); error != 0) return error;
  ++initialized;
  return 0;
}
EXPORTED int nvmlShutdown() {
  --initialized;
  return 0;
}
#ifndef GLEANER_FAKE_OLD_NVML
EXPORTED const char* nvmlErrorString(int error) {
  switch (error) {
    case 3:
      return "Not Supported";
    case 9:
      return "Driver Not Loaded";
    case 13:
      return "Function Not Found";
    case 15:
      return "GPU is lost";
    default:
      return "Unknown Error";
  }
}
#endif
EXPORTED int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return initialized == 1 ? injected("Count_v2=") : 1;
}
EXPORTED int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = reinterpret_cast<void*>(static_cast<size_t>(index) + 1);
  return injected("HandleByIndex_v2", index);
}
EXPORTED int nvmlDeviceGetUUID(void* device, char* text, unsigned bytes) {
  std::snprintf(text, bytes, "GPU-fake-%zu", index_of(device) + 1);
  return injected("UUID", index_of(device));
}
EXPORTED int nvmlDeviceGetName(void* device, char* text, unsigned bytes) {
  std::snprintf(text, bytes, "Fake H100");
  return injected("Name", index_of(device));
}
EXPORTED int nvmlDeviceGetPciInfo_v3(void* device, void* info) {
  // The layout is char busIdLegacy[16], five unsigned, char busId[32].
  std::memset(info, 'x', 16 + 20);
  const char* address = index_of(device) == 0 ? "00000000:D9:00.0" : "00000000:19:00.0";
  std::snprintf(static_cast<char*>(info) + 36, 32, "%s", address);
  return injected("PciInfo_v3", index_of(device));
}
#ifndef GLEANER_FAKE_OLD_NVML
EXPORTED int nvmlDeviceGetMemoryInfo(void* device, void* info) {
  auto* bytes = static_cast<unsigned long long*>(info);
  bytes[0] = 85899345920ULL, bytes[1] = 1, bytes[2] = 2;
  return injected("MemoryInfo", index_of(device));
}
#endif

}  // extern "C"
