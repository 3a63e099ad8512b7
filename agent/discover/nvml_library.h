// Nvml is NVIDIA's management library, opened at run time: the part of its C interface that the agent uses, with the
// published layout (nvml.h of CUDA 9 and later). NVML keeps these entry points and sizes; a changed one gets a new
// version in its name.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace gleaner::discover {

// Constants of nvml.h.
namespace nvml {

// nvmlReturn_t
inline constexpr int kSuccess = 0, kInvalidArgument = 2, kNotSupported = 3, kNotFound = 6, kFunctionNotFound = 13,
                     kGpuIsLost = 15;
inline constexpr unsigned kTextBytes = 96;  // NVML_DEVICE_UUID_V2_BUFFER_SIZE, NVML_DEVICE_NAME_V2_BUFFER_SIZE
inline constexpr unsigned kMostLinks = 36;  // NVML_NVLINK_MAX_LINKS of CUDA 13; earlier versions have fewer
inline constexpr int kPeerAccess = 0;       // NVML_NVLINK_CAP_P2P_SUPPORTED
inline constexpr int kSwitch = 2;           // NVML_NVLINK_DEVICE_TYPE_SWITCH
inline constexpr unsigned kEnabled = 1;     // NVML_FEATURE_ENABLED, NVML_DEVICE_MIG_ENABLE
inline constexpr unsigned kLinkSpeed = 90;  // NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON: megabytes per second of a link
inline constexpr int kUnsignedInt = 1;      // NVML_VALUE_TYPE_UNSIGNED_INT

}  // namespace nvml

class Nvml {
 public:
  using Device = struct NvmlDevice*;

  struct PciInfo {  // nvmlPciInfo_t of nvmlDeviceGetPciInfo_v3
    char bus_id_legacy[16];
    unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
    char bus_id[32];
  };
  static_assert(sizeof(PciInfo) == 68);

  struct MemoryInfo {  // nvmlMemory_t of nvmlDeviceGetMemoryInfo
    unsigned long long total, free, used;
  };
  static_assert(sizeof(MemoryInfo) == 24);

  struct FieldValue {  // nvmlFieldValue_t
    unsigned field_id, scope_id;
    long long timestamp, latency_microseconds;
    int type, code;
    union {
      unsigned unsigned_int;
      unsigned long long widest;
    } value;
  };
  static_assert(sizeof(FieldValue) == 40);

  // NotFound: there is no such library. Unavailable: it lacks functions that NVML of CUDA 9 and later has.
  static absl::StatusOr<Nvml> open(const std::string& path);

  absl::Status check(int code, const char* what) const;
  std::string text_of(int code) const;

  // Null: the library lacks the function. Those of open()'s check are never null.
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  const char* (*error_string)(int) = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*handle)(unsigned, Device*) = nullptr;
  int (*uuid)(Device, char*, unsigned) = nullptr;
  int (*name)(Device, char*, unsigned) = nullptr;
  int (*pci_info)(Device, PciInfo*) = nullptr;
  int (*memory_info)(Device, MemoryInfo*) = nullptr;
  int (*mig_mode)(Device, unsigned* now, unsigned* pending) = nullptr;
  int (*most_mig_instances)(Device, unsigned*) = nullptr;
  int (*mig_instance)(Device, unsigned index, Device*) = nullptr;
  int (*link_capability)(Device, unsigned link, int capability, unsigned*) = nullptr;
  int (*link_state)(Device, unsigned link, unsigned*) = nullptr;
  int (*link_remote_type)(Device, unsigned link, int*) = nullptr;
  int (*link_remote_pci_info)(Device, unsigned link, PciInfo*) = nullptr;
  int (*field_values)(Device, int count, FieldValue*) = nullptr;

 private:
  struct Close {
    void operator()(void* library) const;
  };

  template <typename Function>
  bool find(const char* symbol, Function& function);

  std::unique_ptr<void, Close> library_;
};

}  // namespace gleaner::discover
