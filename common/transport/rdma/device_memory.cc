#include "common/transport/rdma/device_memory.h"

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace gleaner::transport::rdma {
namespace {

absl::Status not_supported(ibv_pd* domain, int error) {
  return absl::UnimplementedError(absl::StrCat("device memory can't be registered with ",
                                               ibv_get_device_name(domain->context->device),
                                               ": its driver takes no dma-buf (", std::strerror(error), ")"));
}

bool means_unsupported(int error) { return error == EOPNOTSUPP || error == ENOSYS || error == EPROTONOSUPPORT; }

}  // namespace

absl::Status check_device_memory(ibv_pd* domain) {
  // A driver that takes dma-bufs looks at the descriptor, and finds none.
  const MemoryRegion region(ibv_reg_dmabuf_mr(domain, 0, 4096, 0, -1, IBV_ACCESS_LOCAL_WRITE));
  const int error = errno;
  if (region != nullptr || !means_unsupported(error)) return absl::OkStatus();
  return not_supported(domain, error);
}

absl::StatusOr<MemoryRegion> register_device_memory(ibv_pd* domain, const DeviceMemory& memory, int access) {
  MemoryRegion region(
      ibv_reg_dmabuf_mr(domain, memory.offset, memory.bytes, memory.address, memory.descriptor, access));
  if (region != nullptr) return region;
  const int error = errno;
  if (means_unsupported(error)) return not_supported(domain, error);
  if (error == EBADF || error == EINVAL) {
    return absl::InvalidArgumentError(absl::StrCat("no dma-buf of ", memory.offset + memory.bytes,
                                                   " bytes behind descriptor ", memory.descriptor, ": ",
                                                   std::strerror(error)));
  }
  return verbs_error(error, "can't register device memory");
}

}  // namespace gleaner::transport::rdma
