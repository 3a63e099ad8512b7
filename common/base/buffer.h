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

namespace buffer {
struct Block;
}

// What somebody keeps beside a block, and which ends with it, or by remove() before.
class Attachment {
 public:
  // `owner`: whose it is, a number that nobody else uses; a block keeps one of each.
  explicit Attachment(uint64_t owner) : owner_(owner) {}
  virtual ~Attachment() = default;
  Attachment(const Attachment&) = delete;
  Attachment& operator=(const Attachment&) = delete;

  void remove();  // deletes this
  uint64_t owner() const { return owner_; }

 private:
  friend class Buffer;
  const uint64_t owner_;
  buffer::Block* block_ = nullptr;
  std::unique_ptr<Attachment> next_;
};

namespace buffer {

struct Block {
  std::byte* memory = nullptr;
  size_t capacity = 0;
  uint32_t references = 0;
  BufferPool* pool = nullptr;  // null: borrowed
  bool lasting = false;        // its memory is there for long
  Block* whole = nullptr;      // of which this is a part, counted for itself; held
  std::unique_ptr<Attachment> attachments;
};

}  // namespace buffer

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
  // The same for memory that is there for long, such as a job's: parts of it are slices of this one handle, or its
  // borrow_part()s, so that what is attached to it serves them all.
  static Buffer borrow_lasting(MutableBytes memory);
  // A part of this buffer's memory with a sole_owner() of its own. As long as it has handles, this one is shared.
  Buffer borrow_part(MutableBytes part) const;

  MutableBytes bytes() const { return data_; }
  size_t size() const { return data_.size(); }
  bool empty() const { return data_.empty(); }

  // A handle to a part of the same block: no copy, no allocation. Needs offset + size <= this->size().
  Buffer slice(size_t offset, size_t size) const;

  // True when no other handle shares the block (an empty Buffer: true).
  bool sole_owner() const;

  // All of the block's memory, page aligned where it is of a pool. What is attached to it may use it until it ends. Of
  // a borrow_part(): the whole's, as for all that is said of blocks from here on.
  MutableBytes block() const {
    return block_ == nullptr ? MutableBytes{} : MutableBytes(whole()->memory, whole()->capacity);
  }
  // Whether the block's memory stays for longer than its handles: of a pool, or lasting.
  bool is_lasting() const { return block_ != nullptr && (whole()->pool != nullptr || whole()->lasting); }
  Attachment* attachment(uint64_t owner) const;  // null: none
  // Needs a block without one of this owner.
  void attach(std::unique_ptr<Attachment> attachment) const;

 private:
  friend class BufferPool;
  using Block = buffer::Block;
  Buffer(Block* block, MutableBytes data) : block_(block), data_(data) { retain(); }
  Block* whole() const { return block_->whole == nullptr ? block_ : block_->whole; }
  void retain() const {
    if (block_ != nullptr) ++block_->references;
  }
  void release();
  static void release(Block* block);

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
