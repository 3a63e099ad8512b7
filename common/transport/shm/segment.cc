#include "common/transport/shm/segment.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/units.h"

// Some C libraries lack these constants of the kernel's interface.
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif
#ifndef MFD_HUGE_2MB
#define MFD_HUGE_2MB (21U << 26)
#endif

namespace gleaner::transport::shm {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;
constexpr size_t kHugePage = size_t{2} << 20;

absl::Status no_memory(absl::string_view what, size_t bytes) {
  return absl::ResourceExhaustedError(absl::StrCat("can't ", what, " ", format_bytes(static_cast<double>(bytes)),
                                                   " of shared memory: ", std::strerror(errno),
                                                   "; raise the memory limit (of the container, or ulimit -v)"));
}

bool reserve(int file, size_t bytes) {
  int failed = 0;
  do {
    failed = fallocate(file, 0, 0, static_cast<off_t>(bytes));
  } while (failed != 0 && errno == EINTR);
  return failed == 0;
}

}  // namespace

absl::StatusOr<Segment> Segment::create(size_t bytes, bool huge_pages) {
  if (huge_pages) {
    auto huge = make((bytes + kHugePage - 1) / kHugePage * kHugePage, true);
    if (huge.ok()) return huge;
  }
  return make(bytes, false);
}

absl::StatusOr<Segment> Segment::make(size_t bytes, bool huge) {
  const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING | (huge ? unsigned{MFD_HUGETLB} | MFD_HUGE_2MB : 0);
  Descriptor file(memfd_create("gleaner-shm", flags));
  if (!file.valid()) return no_memory("make a file for", bytes);
  if (ftruncate(file.get(), static_cast<off_t>(bytes)) != 0 || !reserve(file.get(), bytes)) {
    return no_memory("reserve", bytes);
  }
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file.get(), 0);
  if (memory == MAP_FAILED) return no_memory("map", bytes);
  Segment segment(std::move(file), {static_cast<std::byte*>(memory), bytes}, huge);
  // Forked children do not need the mapping, and would keep the memory alive.
  madvise(memory, bytes, MADV_DONTFORK);
  if (fcntl(segment.file(), F_ADD_SEALS, kSeals) != 0) {
    return absl::UnimplementedError(
        absl::StrCat("can't seal shared memory: ", std::strerror(errno), "; this needs Linux 5.1 or later"));
  }
  return segment;
}

absl::StatusOr<Segment> Segment::map(Descriptor file) {
  const int seals = file.valid() ? fcntl(file.get(), F_GET_SEALS) : -1;
  if (seals < 0)
    return absl::InvalidArgumentError("the peer's offer of shared memory has a file that is not a memory file");
  if ((seals & kSeals) != kSeals) {
    return absl::InvalidArgumentError("the peer's shared memory is not sealed: it could shrink while in use");
  }
  struct stat facts {};
  if (fstat(file.get(), &facts) != 0) return absl::ErrnoToStatus(errno, "fstat");
  const auto bytes = static_cast<size_t>(facts.st_size);
  if (facts.st_size < 0 || bytes < kLeastSegment || bytes > kMostSegment) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the peer offered ", facts.st_size, " bytes of shared memory; expected ", kLeastSegment, " to ", kMostSegment));
  }
  void* const memory = mmap(nullptr, bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, file.get(), 0);
  if (memory == MAP_FAILED) return no_memory("map", bytes);
  madvise(memory, bytes, MADV_DONTFORK);
  return Segment({}, {static_cast<std::byte*>(memory), bytes}, false);
}

Segment::~Segment() {
  if (!memory_.empty()) munmap(memory_.data(), memory_.size());
}

}  // namespace gleaner::transport::shm
