#include "common/base/buffer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace gleaner {
namespace {

TEST(BufferPoolTest, BlocksArePageAlignedAndOfTheRequestedSize) {
  BufferPool pool;
  for (size_t size : {1, 4095, 4096, 4097, 100'000, 4 << 20}) {
    const Buffer buffer = pool.take(size);
    EXPECT_EQ(buffer.size(), size);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.bytes().data()) % 4096, 0u);
    buffer.bytes().back() = std::byte{1};  // a sanitizer would report an access behind the buffer
  }
  EXPECT_TRUE(pool.take(0).empty());
}

TEST(BufferPoolTest, AWarmPoolReservesNoMore) {
  BufferPool pool;
  const std::byte* first = nullptr;
  {
    const Buffer a = pool.take(5000), b = pool.take(4096);
    first = a.bytes().data();
    EXPECT_EQ(pool.bytes_in_use(), 8192u + 4096u);
  }
  EXPECT_EQ(pool.bytes_in_use(), 0u);
  EXPECT_EQ(pool.bytes_reserved(), 8192u + 4096u);
  const Buffer again = pool.take(8192);
  EXPECT_EQ(again.bytes().data(), first);
  EXPECT_EQ(pool.bytes_reserved(), 8192u + 4096u);
}

TEST(BufferTest, SlicesKeepTheBlock) {
  BufferPool pool;
  Buffer whole = pool.take(1000);
  whole.bytes()[100] = std::byte{42};
  EXPECT_TRUE(whole.sole_owner());
  Buffer part = whole.slice(100, 10);
  EXPECT_FALSE(whole.sole_owner());
  EXPECT_FALSE(part.sole_owner());
  whole = {};
  EXPECT_TRUE(part.sole_owner());
  EXPECT_EQ(pool.bytes_in_use(), 4096u);
  EXPECT_EQ(part.size(), 10u);
  EXPECT_EQ(part.bytes()[0], std::byte{42});
  part = {};
  EXPECT_EQ(pool.bytes_in_use(), 0u);
}

TEST(BufferTest, CopiesShareABlockAndMovesTransferIt) {
  BufferPool pool;
  Buffer a = pool.take(10);
  Buffer copy = a;
  EXPECT_FALSE(a.sole_owner());
  Buffer moved = std::move(copy);
  EXPECT_TRUE(copy.empty());  // NOLINT(bugprone-use-after-move): what is left is defined
  EXPECT_FALSE(a.sole_owner());
  moved = a;
  a = std::move(moved);
  EXPECT_TRUE(a.sole_owner());
  EXPECT_EQ(a.size(), 10u);
  const Buffer& self = a;
  a = self;
  EXPECT_TRUE(a.sole_owner());
  EXPECT_EQ(a.size(), 10u);
}

TEST(BufferTest, BorrowedMemoryIsFreeWhenItsOwnerIsAlone) {
  std::vector<std::byte> memory(64);
  const Buffer mine = Buffer::borrow(memory);
  {
    const Buffer theirs = mine.slice(8, 8);
    theirs.bytes()[0] = std::byte{7};
    EXPECT_FALSE(mine.sole_owner());
  }
  EXPECT_TRUE(mine.sole_owner());
  EXPECT_EQ(memory[8], std::byte{7});
  EXPECT_TRUE(Buffer().sole_owner());
}

TEST(BufferTest, ABlockOutlivesTheHandleThatTookIt) {
  BufferPool pool;
  std::vector<Buffer> handles;
  for (int i = 0; i < 100; ++i) handles.push_back(pool.take(1 << 12));
  EXPECT_EQ(pool.bytes_in_use(), uint64_t{100} << 12);
  handles.erase(handles.begin(), handles.begin() + 50);
  EXPECT_EQ(pool.bytes_in_use(), uint64_t{50} << 12);
  handles.clear();
  EXPECT_EQ(pool.bytes_reserved(), uint64_t{100} << 12);
}

// Counts its live instances.
class Note : public Attachment {
 public:
  Note(uint64_t owner, int* count) : Attachment(owner), count_(count) { ++*count_; }
  ~Note() override { --*count_; }

 private:
  int* const count_;
};

TEST(AttachmentTest, StaysWithTheBlockUntilItEnds) {
  int notes = 0;
  {
    BufferPool pool;
    {
      const Buffer buffer = pool.take(5000);
      EXPECT_EQ(buffer.attachment(1), nullptr);
      buffer.attach(std::make_unique<Note>(1, &notes));
      buffer.attach(std::make_unique<Note>(2, &notes));
      EXPECT_EQ(buffer.block().size(), 8192u);
      EXPECT_TRUE(buffer.is_lasting());
    }
    EXPECT_EQ(notes, 2) << "the attachment outlives the handles";
    const Buffer again = pool.take(7000).slice(100, 10);
    ASSERT_NE(again.attachment(1), nullptr);
    EXPECT_EQ(again.attachment(2)->key(), 2u);
    again.attachment(1)->remove();
    EXPECT_EQ(notes, 1);
    EXPECT_EQ(again.attachment(1), nullptr);
    ASSERT_NE(again.attachment(2), nullptr);
    again.attach(std::make_unique<Note>(1, &notes));
    again.attachment(2)->remove();
    EXPECT_NE(again.attachment(1), nullptr);
  }
  EXPECT_EQ(notes, 0);
}

TEST(AttachmentTest, BorrowedMemoryLastsOnlyIfItsOwnerSaysSo) {
  int notes = 0;
  std::vector<std::byte> memory(100);
  {
    const Buffer lasting = Buffer::borrow_lasting(memory);
    lasting.slice(10, 20).attach(std::make_unique<Note>(1, &notes));
    EXPECT_TRUE(lasting.slice(50, 1).is_lasting());
    EXPECT_NE(lasting.attachment(1), nullptr);
    EXPECT_EQ(lasting.slice(50, 1).block().data(), memory.data());
    EXPECT_FALSE(Buffer::borrow(memory).is_lasting());
    EXPECT_FALSE(Buffer::borrow(memory).borrow_part(memory).is_lasting());
    EXPECT_FALSE(Buffer().is_lasting());
  }
  EXPECT_EQ(notes, 0);
}

TEST(AttachmentTest, PartsHaveTheirOwnOwnersAndTheAttachmentsOfTheWhole) {
  int notes = 0;
  std::vector<std::byte> memory(100);
  auto whole = std::make_unique<Buffer>(Buffer::borrow_lasting(memory));
  Buffer part = whole->borrow_part(std::span(memory).subspan(10, 20));
  part.attach(std::make_unique<Note>(1, &notes));
  EXPECT_EQ(part.attachment(1), whole->attachment(1));
  EXPECT_TRUE(part.is_lasting());
  EXPECT_EQ(part.block().size(), memory.size());
  EXPECT_EQ(part.bytes().data(), memory.data() + 10);
  EXPECT_EQ(part.size(), 20u);
  EXPECT_TRUE(part.sole_owner());
  EXPECT_FALSE(whole->sole_owner());
  {
    const Buffer slice = part.slice(5, 5);
    EXPECT_FALSE(part.sole_owner());
    const Buffer part_of_part = part.borrow_part(slice.bytes());
    EXPECT_FALSE(slice.sole_owner());
    EXPECT_EQ(part_of_part.attachment(1), whole->attachment(1));
  }
  EXPECT_TRUE(part.sole_owner());
  whole.reset();
  EXPECT_EQ(notes, 1) << "the whole lasts as long as its parts";
  part = {};
  EXPECT_EQ(notes, 0);
}

}  // namespace
}  // namespace gleaner
