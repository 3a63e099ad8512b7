#include "comm-lib/session/accumulated_answers.h"

#include <gtest/gtest.h>

#include <cstring>

namespace gleaner::session {
namespace {

// Answers about partition 1, of 8 bytes, in a job of two workers.
class AccumulatedAnswersTest : public ::testing::Test {
 protected:
  AccumulatedAnswersTest() {
    plan_.workers = 2;
    plan_.members.resize(2);
    plan_.tensors = {{"t", 4, DataType::kFloat32, 0}};
    plan_.partitions.resize(2);
    plan_.partitions[1].bytes = 8;
    answers_.resize(2);
  }
  Buffer answer(uint64_t of_worker_0, uint64_t of_worker_1) {
    Buffer answer = pool_.take(24);
    std::memset(answer.bytes().data(), 0, 8);
    std::memcpy(answer.bytes().data() + 8, &of_worker_0, 8);
    std::memcpy(answer.bytes().data() + 16, &of_worker_1, 8);
    return answer;
  }
  // Checks an answer to worker 1's push of `step`.
  absl::Status check(uint64_t step, const Buffer& answer) const {
    wire::Header header;
    header.step = step;
    header.partition = 1;
    return answers_.check(plan_, 1, 1, header, answer);
  }

  plan::Plan plan_;
  BufferPool pool_;
  AccumulatedAnswers answers_;
};

TEST_F(AccumulatedAnswersTest, KeepsTheLastAnswer) {
  EXPECT_TRUE(answers_.answer(1).empty());
  EXPECT_EQ(answers_.version(1), 0u);
  answers_.keep(plan_, 1, answer(3, 1));
  EXPECT_EQ(answers_.version(1), 4u);
  EXPECT_EQ(answers_.bytes(), 24u);
  answers_.keep(plan_, 1, answer(3, 2));
  EXPECT_EQ(answers_.version(1), 5u);
  EXPECT_EQ(answers_.bytes(), 24u);
  EXPECT_EQ(answers_.answer(1).size(), 24u);
  EXPECT_TRUE(answers_.answer(0).empty());
}

TEST_F(AccumulatedAnswersTest, CountsEachOwnContributionOnce) {
  EXPECT_EQ(check(0, answer(0, 1)), absl::OkStatus());
  EXPECT_TRUE(absl::IsInvalidArgument(check(0, answer(1, 0)))) << "the answer lacks this worker's contribution";
  EXPECT_TRUE(absl::IsInvalidArgument(check(0, answer(0, 2)))) << "the answer has the contribution twice";
}

TEST_F(AccumulatedAnswersTest, AnswersGrow) {
  answers_.keep(plan_, 1, answer(5, 1));
  EXPECT_EQ(check(1, answer(5, 2)), absl::OkStatus());
  EXPECT_TRUE(absl::IsInvalidArgument(check(1, answer(4, 2))));
}

}  // namespace
}  // namespace gleaner::session
