#include "comm-lib/local/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/units.h"

namespace gleaner::local {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

absl::Status no_memory(absl::string_view what, size_t bytes) {
  return absl::ResourceExhaustedError(absl::StrCat(
      "can't ", what, " ", format_bytes(static_cast<double>(bytes)), " that the local ranks share: ",
      std::strerror(errno), "; raise the memory limit (of the container, or ulimit -v), or use fewer local ranks"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Segment>> Segment::create(size_t bytes) {
  Descriptor file(memfd_create("gleaner-local", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.valid() || ftruncate(file.get(), static_cast<off_t>(bytes)) != 0 ||
      fcntl(file.get(), F_ADD_SEALS, kSeals) != 0) {
    return no_memory("make a memory file of", bytes);
  }
  return map_file(std::move(file), bytes);
}

absl::StatusOr<std::unique_ptr<Segment>> Segment::map(Descriptor file, size_t bytes) {
  struct stat facts {};
  if (!file.valid() || fstat(file.get(), &facts) != 0 || facts.st_size != static_cast<off_t>(bytes)) {
    return absl::InvalidArgumentError(absl::StrCat("expected a memory file of ", bytes,
                                                   " bytes from local rank 0, got ",
                                                   file.valid() ? "a file of another size" : "none"));
  }
  const int seals = fcntl(file.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals) {
    return absl::InvalidArgumentError("the memory file of local rank 0 is not sealed: it could shrink while in use");
  }
  GLN_ASSIGN_OR_RETURN(auto segment, map_file(std::move(file), bytes));
  segment->reserved_bytes_ = bytes;  // its maker has reserved it
  return segment;
}

absl::StatusOr<std::unique_ptr<Segment>> Segment::map_file(Descriptor file, size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) return no_memory("map", bytes);
  // Children that the training process forks, such as data loaders, do not need the mapping and must not keep the
  // memory alive.
  madvise(memory, bytes, MADV_DONTFORK);
  return std::unique_ptr<Segment>(new Segment(std::move(file), {static_cast<std::byte*>(memory), bytes}));
}

Segment::~Segment() { munmap(memory_.data(), memory_.size()); }

absl::Status Segment::reserve(size_t most) {
  const size_t bytes = std::min(most, memory_.size() - reserved_bytes_);
  if (bytes == 0) return absl::OkStatus();
  int failed = 0;
  do {
    failed = fallocate(file_.get(), 0, static_cast<off_t>(reserved_bytes_), static_cast<off_t>(bytes));
  } while (failed != 0 && errno == EINTR);
  if (failed != 0) return no_memory("get", memory_.size());
  reserved_bytes_ += bytes;
  return absl::OkStatus();
}

absl::StatusOr<Descriptor> Segment::duplicate() const {
  Descriptor copy(fcntl(file_.get(), F_DUPFD_CLOEXEC, 0));
  if (!copy.valid()) return no_memory("duplicate the descriptor of", memory_.size());
  return copy;
}

}  // namespace gleaner::local
