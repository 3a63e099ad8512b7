#include "common/collective/checker.h"

#include <bit>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/collective/messages.h"

namespace gleaner::collective {
namespace {

// The sets of contributions in each chunk of each rank, as bits: one for each rank that contributes to the chunk.
class Contributions {
 public:
  explicit Contributions(const Schedule& schedule)
      : schedule_(schedule),
        count_(schedule.adds() ? schedule.ranks : 1),
        words_((count_ + 63) / 64),
        bits_(size_t{schedule.ranks} * schedule.chunks * words_) {
    for (uint32_t rank = 0; rank < schedule.ranks; ++rank) {
      const uint32_t own = schedule.adds() ? rank : 0;
      for (uint32_t chunk = 0; chunk < schedule.chunks; ++chunk) {
        if (!schedule.begins_with(rank, schedule.block_of(chunk))) continue;
        of(rank, chunk)[own / 64] |= uint64_t{1} << (own % 64);
      }
    }
  }

  // Adds what `from` has to what `to` has. Returns a rank whose contribution both have, or kNone.
  uint32_t add(uint32_t to, uint32_t from, uint32_t chunk) {
    uint64_t* sum = of(to, chunk);
    const uint64_t* added = of(from, chunk);
    for (size_t word = 0; word < words_; ++word) {
      if (const uint64_t both = sum[word] & added[word]; both != 0) return contributor(chunk, word, both);
      sum[word] |= added[word];
    }
    return kNone;
  }
  void copy(uint32_t to, uint32_t from, uint32_t chunk) {
    const uint64_t* source = of(from, chunk);
    std::copy(source, source + words_, of(to, chunk));
  }
  // Returns a rank whose contribution to a chunk is lacking, or kNone: the chunk is complete.
  uint32_t lacking(uint32_t rank, uint32_t chunk) {
    const uint64_t* has = of(rank, chunk);
    for (size_t word = 0; word < words_; ++word) {
      const uint64_t all = word + 1 == words_ && count_ % 64 != 0 ? (uint64_t{1} << (count_ % 64)) - 1 : ~uint64_t{0};
      if (const uint64_t lacks = all & ~has[word]; lacks != 0) return contributor(chunk, word, lacks);
    }
    return kNone;
  }

  static constexpr uint32_t kNone = ~0u;

 private:
  uint64_t* of(uint32_t rank, uint32_t chunk) { return &bits_[(size_t{rank} * schedule_.chunks + chunk) * words_]; }
  // Returns the rank for which the lowest of some bits of a word stands.
  uint32_t contributor(uint32_t chunk, size_t word, uint64_t bits) const {
    const uint32_t bit = static_cast<uint32_t>(word * 64) + static_cast<uint32_t>(std::countr_zero(bits));
    return schedule_.contributor(schedule_.block_of(chunk)).value_or(bit);
  }

  const Schedule& schedule_;
  const uint32_t count_;  // contributions to a chunk
  const size_t words_;
  std::vector<uint64_t> bits_;
};

// Which operations happen before each rank's next one: vector clocks. A clock has the number of operations of each rank
// that happen before. Sends without a receive between them share one copy.
class Clocks {
 public:
  Clocks(uint32_t ranks, size_t messages) : of_rank_(ranks), of_message_(messages) {
    for (std::shared_ptr<Clock>& clock : of_rank_) clock = std::make_shared<Clock>(ranks, 0);
  }

  void send(const Message& message, uint32_t index) { of_message_[index] = of_rank_[message.from]; }
  void receive(const Message& message, uint32_t index) {
    std::shared_ptr<Clock>& own = of_rank_[message.to];
    if (own.use_count() > 1) own = std::make_shared<Clock>(*own);
    const std::shared_ptr<Clock> other = std::move(of_message_[index]);
    for (size_t rank = 0; rank < own->size(); ++rank) (*own)[rank] = std::max((*own)[rank], (*other)[rank]);
    (*own)[message.from] = std::max((*own)[message.from], message.send + 1);
  }
  // Returns whether an operation of `peer` happens before the next operation of `rank`, another rank.
  bool happens_before(uint32_t peer, uint32_t op, uint32_t rank) const { return (*of_rank_[rank])[peer] > op; }

 private:
  using Clock = std::vector<uint32_t>;
  std::vector<std::shared_ptr<Clock>> of_rank_;
  std::vector<std::shared_ptr<Clock>> of_message_;  // of messages under way
};

class Checker {
 public:
  Checker(const Schedule& schedule, const Messages& messages)
      : schedule_(schedule),
        messages_(messages),
        contributions_(schedule),
        clocks_(schedule.ranks, messages.all().size()),
        sent_(size_t{schedule.ranks} * schedule.chunks) {}

  absl::Status check() {
    GLN_RETURN_IF_ERROR(messages_.run(schedule_, [this](uint32_t rank, uint32_t op, uint32_t index) {
      const Message& message = messages_.all()[index];
      if (schedule_.programs[rank][op].kind == OpKind::kSend) return send(message, index);
      return receive(message, index);
    }));
    for (uint32_t rank = 0; rank < schedule_.ranks; ++rank) {
      for (uint32_t chunk = 0; chunk < schedule_.chunks; ++chunk) {
        if (!schedule_.ends_with(rank, schedule_.block_of(chunk))) continue;
        if (const uint32_t lacks = contributions_.lacking(rank, chunk); lacks != Contributions::kNone) {
          return absl::InvalidArgumentError(
              absl::StrCat("rank ", rank, " ends without the contribution of rank ", lacks, " to chunk ", chunk));
        }
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status send(const Message& message, uint32_t index) {
    clocks_.send(message, index);
    for (uint32_t i = 0; i < message.slice.count; ++i) sent(message.from, message.slice.first + i).push_back(index);
    return absl::OkStatus();
  }

  // As a slice does not change while it is being sent, what the sender has now is what it sent.
  absl::Status receive(const Message& message, uint32_t index) {
    clocks_.receive(message, index);
    for (uint32_t i = 0; i < message.slice.count; ++i) {
      const uint32_t chunk = message.slice.first + i;
      GLN_RETURN_IF_ERROR(check_change(message, chunk));
      if (message.take == Take::kCopy) {
        GLN_RETURN_IF_ERROR(copy(message, chunk));
        continue;
      }
      if (const auto only = schedule_.contributor(schedule_.block_of(chunk)); only.has_value()) {
        return wrong(message,
                     absl::StrCat("would add to chunk ", chunk, ", to which rank ", *only, " alone contributes"));
      }
      const uint32_t twice = contributions_.add(message.to, message.from, chunk);
      if (twice == Contributions::kNone) continue;
      return wrong(message, absl::StrCat("would add the contribution of rank ", twice, " to chunk ", chunk, " twice"));
    }
    return absl::OkStatus();
  }

  // A copied chunk is handed out as it is, so it must be complete. So a receive of a partial sum must reduce.
  absl::Status copy(const Message& message, uint32_t chunk) {
    const uint32_t lacks = contributions_.lacking(message.from, chunk);
    if (lacks != Contributions::kNone) {
      return wrong(message, absl::StrCat("would copy chunk ", chunk, " without the contribution of rank ", lacks));
    }
    contributions_.copy(message.to, message.from, chunk);
    return absl::OkStatus();
  }

  // Checks that the peers have received a chunk that this receive is going to change.
  absl::Status check_change(const Message& message, uint32_t chunk) {
    std::vector<uint32_t>& sent_before = sent(message.to, chunk);
    for (const uint32_t index : sent_before) {
      const Message& earlier = messages_.all()[index];
      if (clocks_.happens_before(earlier.to, earlier.receive, message.to)) continue;
      return wrong(message, absl::StrCat("may change chunk ", chunk, " while operation ", earlier.send,
                                         " still sends it to rank ", earlier.to));
    }
    sent_before.clear();
    return absl::OkStatus();
  }

  absl::Status wrong(const Message& message, absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat(describe(schedule_, message.to, message.receive), " ", what));
  }
  std::vector<uint32_t>& sent(uint32_t rank, uint32_t chunk) { return sent_[size_t{rank} * schedule_.chunks + chunk]; }

  const Schedule& schedule_;
  const Messages& messages_;
  Contributions contributions_;
  Clocks clocks_;
  std::vector<std::vector<uint32_t>> sent_;  // by rank, then chunk: messages sent since the chunk changed last
};

}  // namespace

absl::Status check(const Schedule& schedule) {
  GLN_ASSIGN_OR_RETURN(const Messages messages, Messages::make(schedule));
  return Checker(schedule, messages).check();
}

}  // namespace gleaner::collective
