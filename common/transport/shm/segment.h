// The memory of one side of a connection: an anonymous memory file that can't change its size, and that nobody but its
// maker can write to. Gone with the last process that maps it.
//
// Its pages are there when create() returns, so that touching them can't fail later, and they stay: the seals forbid
// everyone, its maker included, to shrink the file or to punch holes into it.
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
  // At least `bytes`, which are within the two limits; rounded up to one huge page where huge pages are wanted and
  // free. ResourceExhausted: no memory, address space or descriptors; Unimplemented: the kernel is older than 5.1.
  static absl::StatusOr<Segment> create(size_t bytes, bool huge_pages);
  // What a peer made, to be read only. InvalidArgument: not such a file.
  static absl::StatusOr<Segment> map(Descriptor file);
  Segment(Segment&& other) noexcept
      : file_(std::move(other.file_)), memory_(std::exchange(other.memory_, {})), huge_(other.huge_) {}
  Segment& operator=(Segment&&) = delete;
  ~Segment();

  MutableBytes memory() const { return memory_; }  // of a peer: writing to it ends this process
  bool is_huge() const { return huge_; }
  int file() const { return file_.get(); }  // of our own, to be passed on; -1 once closed
  void close_file() { file_.reset(); }      // the mapping stays

 private:
  Segment(Descriptor file, MutableBytes memory, bool huge) : file_(std::move(file)), memory_(memory), huge_(huge) {}
  static absl::StatusOr<Segment> make(size_t bytes, bool huge);

  Descriptor file_;
  MutableBytes memory_;
  bool huge_;
};

}  // namespace gleaner::transport::shm
