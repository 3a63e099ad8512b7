#include "agent/discover/nvml.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "agent/discover/nvml_library.h"
#include "agent/discover/pci.h"
#include "common/base/status_macros.h"

namespace gleaner::discover {
namespace {

// Reads one GPU, and records the fields that NVML fails to read.
class GpuReader {
 public:
  GpuReader(const Nvml& nvml, unsigned index) : nvml_(nvml), index_(index) {}

  // Returns nothing if NVML has lost the GPU or cannot identify it.
  std::optional<api::Gpu> read() {
    if (const int code = nvml_.handle(index_, &device_); code != nvml::kSuccess) return leave_out(nvml_.text_of(code));
    std::array<char, nvml::kTextBytes> text{};
    Nvml::PciInfo pci{};
    Nvml::MemoryInfo memory{};
    api::Gpu gpu;
    if (get("UUID", nvml_.uuid, text.data(), nvml::kTextBytes)) gpu.uuid = text.data();
    if (get("model", nvml_.name, text.data(), nvml::kTextBytes)) gpu.model = text.data();
    if (get("PCI address", nvml_.pci_info, &pci)) gpu.pci_address = normal_pci_address(pci.bus_id);
    if (get("memory size", nvml_.memory_info, &memory)) gpu.memory_bytes = memory.total;
    read_mig(gpu);
    read_nvlinks();
    if (lost_) return leave_out(nvml_.text_of(nvml::kGpuIsLost));
    if (gpu.uuid.empty() && gpu.pci_address.empty()) return leave_out("it has neither UUID nor PCI address");
    return gpu;
  }

  const NvlinkEnds& nvlinks() const { return nvlinks_; }
  const std::vector<std::string>& failures() const { return failures_; }

 private:
  std::nullopt_t leave_out(absl::string_view why) {
    failures_ = {absl::StrCat("GPU ", index_, " is left out: ", why)};
    return std::nullopt;
  }

  void read_mig(api::Gpu& gpu) {
    constexpr char kField[] = "number of MIG instances";
    unsigned now = 0, pending = 0, most = 0, instances = 0;
    gpu.mig = get_new("MIG mode", nvml_.mig_mode, &now, &pending) && now == nvml::kEnabled;
    if (!gpu.mig || !get_new(kField, nvml_.most_mig_instances, &most)) return;
    for (unsigned i = 0; i < most; ++i) {
      Nvml::Device instance = nullptr;
      const int code = call(nvml_.mig_instance, i, &instance);
      if (code == nvml::kNotFound) continue;  // there are fewer than there may be
      if (!is_read(kField, code, is_absent(code))) return;
      ++instances;
    }
    gpu.mig_instances = instances;
  }

  // Finds active links as NCCL does (NVIDIA/nccl, src/graph/xml.cc, ncclTopoGetXmlFromGpu). Asking for the capability
  // trains a link, so it comes first.
  void read_nvlinks() {
    for (unsigned link = 0; link < nvml::kMostLinks; ++link) {
      unsigned has_peer_access = 0, state = 0;
      if (!get_of_link("capability", nvml_.link_capability, link, nvml::kPeerAccess, &has_peer_access)) continue;
      if (has_peer_access == 0 || !get_of_link("state", nvml_.link_state, link, &state)) continue;
      if (state == nvml::kEnabled) read_other_end(link);
    }
    if (nvlinks_.to_switches == 0 && nvlinks_.to_devices.empty()) return;
    Nvml::FieldValue speed{.field_id = nvml::kLinkSpeed};
    if (!get_new("speed of NVLinks", nvml_.field_values, 1, &speed)) return;
    if (!is_read("speed of NVLinks", speed.code, is_absent(speed.code)) || speed.type != nvml::kUnsignedInt) return;
    nvlinks_.bits_per_second = speed.value.unsigned_int * 8e6;
  }

  // A virtual machine does not show the address of an NVSwitch, and old drivers do not tell the type.
  void read_other_end(unsigned link) {
    int type = 0;
    if (get_of_link("remote type", nvml_.link_remote_type, link, &type) && type == nvml::kSwitch) {
      ++nvlinks_.to_switches;
      return;
    }
    Nvml::PciInfo pci{};
    if (get_of_link("remote PCI address", nvml_.link_remote_pci_info, link, &pci)) {
      ++nvlinks_.to_devices[normal_pci_address(pci.bus_id)];
    }
  }

  // A field that NVML does not support is absent without a failure: memory, for example, where the GPU shares the
  // CPU's.
  template <typename Function, typename... Arguments>
  bool get(absl::string_view field, Function function, Arguments... arguments) {
    const int code = call(function, arguments...);
    return is_read(field, code, code == nvml::kNotSupported);
  }

  // Reads a field that earlier drivers lack, which is no failure either.
  template <typename Function, typename... Arguments>
  bool get_new(absl::string_view field, Function function, Arguments... arguments) {
    const int code = call(function, arguments...);
    return is_read(field, code, is_absent(code));
  }

  // The same for a link. An invalid argument is the number of a link that the GPU does not have.
  template <typename Function, typename... Arguments>
  bool get_of_link(absl::string_view field, Function function, Arguments... arguments) {
    const int code = call(function, arguments...);
    return is_read(absl::StrCat(field, " of an NVLink"), code, is_absent(code) || code == nvml::kInvalidArgument);
  }

  static bool is_absent(int code) { return code == nvml::kNotSupported || code == nvml::kFunctionNotFound; }

  template <typename Function, typename... Arguments>
  int call(Function function, Arguments... arguments) {
    const int code = function == nullptr ? nvml::kFunctionNotFound : function(device_, arguments...);
    if (code == nvml::kGpuIsLost) lost_ = true;
    return code;
  }

  // Records each failing field once, also if it fails for several links.
  bool is_read(absl::string_view field, int code, bool is_silent) {
    if (code == nvml::kSuccess) return true;
    std::string failure = absl::StrCat("GPU ", index_, " has no ", field, ": ", nvml_.text_of(code));
    const bool is_known = std::find(failures_.begin(), failures_.end(), failure) != failures_.end();
    if (!is_silent && !is_known) failures_.push_back(std::move(failure));
    return false;
  }

  const Nvml& nvml_;
  const unsigned index_;
  Nvml::Device device_ = nullptr;
  bool lost_ = false;
  NvlinkEnds nvlinks_;
  std::vector<std::string> failures_;
};

absl::StatusOr<NvmlGpus> read_each_gpu(const Nvml& nvml) {
  unsigned count = 0;
  GLN_RETURN_IF_ERROR(nvml.check(nvml.count(&count), "the number of GPUs"));
  NvmlGpus gpus;
  gpus.list.reserve(count);
  for (unsigned i = 0; i < count; ++i) {
    GpuReader reader(nvml, i);
    if (std::optional<api::Gpu> gpu = reader.read()) {
      gpus.list.push_back(*std::move(gpu));
      gpus.nvlinks.push_back(reader.nvlinks());
    }
    gpus.failures.insert(gpus.failures.end(), reader.failures().begin(), reader.failures().end());
  }
  return gpus;
}

}  // namespace

absl::StatusOr<NvmlGpus> read_nvml_gpus(const std::string& library) {
  GLN_ASSIGN_OR_RETURN(const Nvml nvml, Nvml::open(library));
  GLN_RETURN_IF_ERROR(nvml.check(nvml.init(), "init"));
  absl::StatusOr<NvmlGpus> gpus = read_each_gpu(nvml);
  nvml.shutdown();
  return gpus;
}

}  // namespace gleaner::discover
