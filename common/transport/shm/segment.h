// Segment is the memory of one side of a connection: an anonymous memory file whose size can't change, and to which
// only its maker can write. The kernel frees it with the last process that maps it.
//
// create() reserves all pages, so that touching them can't fail later. The pages stay: seals forbid all processes, the
// maker included, to shrink the file or to punch holes into it.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "common/base/bytes.h"
#include "common/base/descriptor.h"

namespace gleaner::transport::shm {

inline constexpr size_t kLeastSegment = size_t{64} << 10;
inline constexpr size_t kMostSegment = size_t{256} << 20;

class Segment {
 public:
  // Makes a segment of at least `bytes`, which must be within the two limits. With `huge_pages` the size is rounded up
  // to huge pages of 2 MiB if enough of them are free. ResourceExhausted: no memory, address space or descriptors.
  // Unimplemented: the kernel is older than 5.1.
  static absl::StatusOr<Segment> create(size_t bytes, bool huge_pages);
  // Maps a peer's segment, read-only. InvalidArgument: `file` is not a sealed memory file, or its size is out of
  // limits. ResourceExhausted: the file can't be mapped.
  static absl::StatusOr<Segment> map(Descriptor file);
  Segment(Segment&& other) noexcept
      : file_(std::move(other.file_)), memory_(std::exchange(other.memory_, {})), huge_(other.huge_) {}
  Segment& operator=(Segment&&) = delete;
  ~Segment();

  MutableBytes memory() const { return memory_; }  // a write to a peer's segment kills this process
  bool is_huge() const { return huge_; }
  int file() const { return file_.get(); }  // of an own segment, to be passed to the peer; -1 once closed
  void close_file() { file_.reset(); }      // the mapping stays

 private:
  Segment(Descriptor file, MutableBytes memory, bool huge) : file_(std::move(file)), memory_(memory), huge_(huge) {}
  static absl::StatusOr<Segment> make(size_t bytes, bool huge);

  Descriptor file_;
  MutableBytes memory_;
  bool huge_;
};

}  // namespace gleaner::transport::shm
