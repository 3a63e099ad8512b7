// Reference-counted byte buffers, from a pool or borrowed from a user.
//
// A Buffer is a handle; copies share one block. Pool blocks are page aligned, come in power-of-two classes, and go back
// to their pool when the last handle goes: once warm, nothing is allocated. A borrowed block wraps memory that somebody
// else owns; its owner keeps one handle and may reuse the memory when sole_owner() is true again.
//
// Threads: a pool and all handles to its blocks belong to one thread at a time. The pool must outlive its blocks.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/bytes.h"

namespace gleaner {

class BufferPool;

class Buffer {
 public:
  Buffer() = default;
  Buffer(const Buffer& other) noexcept : block_(other.block_), data_(other.data_) { retain(); }
  Buffer(Buffer&& other) noexcept
      : block_(std::exchange(other.block_, nullptr)), data_(std::exchange(other.data_, {})) {}
  Buffer& operator=(Buffer other) noexcept {
    std::swap(block_, other.block_);
    std::swap(data_, other.data_);
    return *this;
  }
  ~Buffer() { release(); }

  // Wraps memory of somebody else, who keeps it alive until sole_owner() of the returned handle. Allocates its block.
  static Buffer borrow(MutableBytes memory);

  MutableBytes bytes() const { return data_; }
  size_t size() const { return data_.size(); }
  bool empty() const { return data_.empty(); }

  // A handle to a part of the same block: no copy, no allocation. Needs offset + size <= this->size().
  Buffer slice(size_t offset, size_t size) const;

  // True when no other handle shares the block (an empty Buffer: true).
  bool sole_owner() const;

 private:
  friend class BufferPool;
  struct Block {
    std::byte* memory = nullptr;
    size_t capacity = 0;
    uint32_t references = 0;
    BufferPool* pool = nullptr;  // null: borrowed
  };
  Buffer(Block* block, MutableBytes data) : block_(block), data_(data) { retain(); }
  void retain() const {
    if (block_ != nullptr) ++block_->references;
  }
  void release();

  Block* block_ = nullptr;
  MutableBytes data_;
};

class BufferPool {
 public:
  BufferPool() = default;
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;
  ~BufferPool();

  // A buffer of exactly `size` bytes (contents unspecified), at most kMaxBytes; an empty one for size 0.
  Buffer take(size_t size);

  // Bytes in blocks that some handle holds now / in all blocks ever allocated and kept for reuse.
  uint64_t bytes_in_use() const { return bytes_in_use_; }
  uint64_t bytes_reserved() const { return bytes_reserved_; }

  static constexpr size_t kMaxBytes = size_t{1} << 30;

 private:
  friend class Buffer;
  static constexpr int kSmallestClass = 12;  // one page
  static constexpr int kClasses = 19;        // 4 KiB ... 1 GiB
  void give_back(Buffer::Block* block);

  std::array<std::vector<Buffer::Block*>, kClasses> free_;
  uint64_t bytes_in_use_ = 0;
  uint64_t bytes_reserved_ = 0;
};

}  // namespace gleaner
