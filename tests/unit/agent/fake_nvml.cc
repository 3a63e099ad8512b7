// A stand-in for NVIDIA's management library (NVML), since the tests run on machines without a GPU. It has the
// functions that the agent calls, with the layout of the published header. The variable GLEANER_FAKE_NVML has words
// FUNCTION=ERROR and FUNCTION@INDEX=ERROR, which let a function fail, or fail for one GPU: "Init_v2=9 UUID@1=15", and
// words that describe the GPUs:
//   gpus=8            there are eight GPUs, as the machine hgx-h100 has, instead of two
//   links@0-1=2       two NVLinks join GPU 0 and GPU 1
//   switch-links@0=4  four NVLinks of GPU 0 lead to NVSwitches
//   mig@1=3           GPU 1 is in MIG mode, with three instances
// With the macro GLEANER_FAKE_OLD_NVML the library lacks functions, as an old one may.
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

int initialized = 0;

// Returns the number after the word; 0: there is no such word. `word` is "Init_v2=" or "UUID@1=".
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

size_t gpu_count() { return injected("gpus=") == 0 ? 2 : static_cast<size_t>(injected("gpus=")); }

// Writes an nvmlPciInfo_t, with the layout char busIdLegacy[16], five unsigned, char busId[32].
void write_pci_info(const char* address, void* info) {
  std::memset(info, 'x', 16 + 20);
  std::snprintf(static_cast<char*>(info) + 36, 32, "00000000:%s:00.0", address);
}

constexpr const char* kBuses[] = {"D9", "19", "3C", "4E", "5F", "99", "B8", "CA"};  // of each GPU

int links_between(size_t a, size_t b) {
  char word[64];
  std::snprintf(word, sizeof(word), "links@%zu-%zu=", a < b ? a : b, a < b ? b : a);
  return injected(word);
}

constexpr int kSwitch = 8, kPeerless = 9, kInactive = 10, kNone = 11;

// Returns the other end of a GPU's link: a GPU, or one of those constants. Links to other GPUs and NVSwitches are
// followed by one over which no memory can be reached, and an inactive one.
int other_end(size_t gpu, unsigned link) {
  int next = 0;
  for (size_t other = 0; other < gpu_count(); ++other) {
    next += other == gpu ? 0 : links_between(gpu, other);
    if (static_cast<int>(link) < next) return static_cast<int>(other);
  }
  next += injected("switch-links", gpu);
  if (static_cast<int>(link) < next) return kSwitch;
  return static_cast<int>(link) == next ? kPeerless : static_cast<int>(link) == next + 1 ? kInactive : kNone;
}

// Returns the error of a function about a link: the injected one, or that the GPU has no NVLinks or none of this
// number.
int error_of_link(const char* function, size_t gpu, unsigned link) {
  if (other_end(gpu, 0) == kPeerless) return 3;
  return other_end(gpu, link) == kNone ? 2 : injected(function, gpu);
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
  *count = static_cast<unsigned>(gpu_count());
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
  write_pci_info(kBuses[index_of(device)], info);
  return injected("PciInfo_v3", index_of(device));
}
EXPORTED int nvmlDeviceGetNvLinkCapability(void* device, unsigned link, int capability, unsigned* result) {
  const int end = other_end(index_of(device), link);
  *result = capability == 0 && end != kPeerless;
  return error_of_link("NvLinkCapability", index_of(device), link);
}
EXPORTED int nvmlDeviceGetNvLinkState(void* device, unsigned link, unsigned* state) {
  *state = other_end(index_of(device), link) != kInactive;
  return error_of_link("NvLinkState", index_of(device), link);
}
EXPORTED int nvmlDeviceGetNvLinkRemotePciInfo_v2(void* device, unsigned link, void* info) {
  const int end = other_end(index_of(device), link);
  write_pci_info(end < kSwitch ? kBuses[end] : "FF", info);
  return error_of_link("NvLinkRemotePciInfo_v2", index_of(device), link);
}
EXPORTED int nvmlDeviceGetFieldValues(void* device, int count, void* values) {
  struct {  // nvmlFieldValue_t
    unsigned field, scope;
    long long times[2];
    int type, error;
    unsigned long long value;
  } value;
  std::memcpy(&value, values, sizeof(value));
  if (count != 1 || value.field != 90) return 2;
  value.type = 1;                         // unsigned int, so that only half of the value counts
  value.value = 0x700000000ULL | 25781U;  // megabytes per second of a V100's NVLink
  value.error = injected("LinkSpeed", index_of(device));
  std::memcpy(values, &value, sizeof(value));
  return injected("FieldValues", index_of(device));
}
#ifndef GLEANER_FAKE_OLD_NVML
EXPORTED int nvmlDeviceGetNvLinkRemoteDeviceType(void* device, unsigned link, int* type) {
  *type = other_end(index_of(device), link) == kSwitch ? 2 : 0;
  return error_of_link("NvLinkRemoteDeviceType", index_of(device), link);
}
EXPORTED int nvmlDeviceGetMigMode(void* device, unsigned* now, unsigned* pending) {
  *now = injected("mig", index_of(device)) > 0;
  *pending = 1;
  return injected("MigMode", index_of(device));
}
EXPORTED int nvmlDeviceGetMaxMigDeviceCount(void* device, unsigned* count) {
  *count = 7;
  return injected("MaxMigDeviceCount", index_of(device));
}
// Instances have odd indexes, since an instance that ends leaves a gap.
EXPORTED int nvmlDeviceGetMigDeviceHandleByIndex(void* device, unsigned index, void** instance) {
  *instance = device;
  const bool exists = index % 2 == 1 && static_cast<int>(index / 2) < injected("mig", index_of(device));
  return exists ? injected("MigDeviceHandleByIndex", index_of(device)) : 6;
}
EXPORTED int nvmlDeviceGetMemoryInfo(void* device, void* info) {
  auto* bytes = static_cast<unsigned long long*>(info);
  bytes[0] = 85899345920ULL, bytes[1] = 1, bytes[2] = 2;
  return injected("MemoryInfo", index_of(device));
}
#endif

}  // extern "C"
