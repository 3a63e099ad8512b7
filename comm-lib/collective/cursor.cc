#include "comm-lib/collective/cursor.h"

#include <array>
#include <cstring>
#include <utility>

namespace gleaner::collective {

void Cursor::open(const Program* program, uint64_t elements, DataType type, ArrivedSlices* arrived) {
  program_ = program;
  arrived_ = arrived;
  elements_ = elements;
  type_ = type;
  has_begun_ = false;
  next_ = 0;
  sources_.resize(program->sources());
  for (uint32_t i = 0; i < sources_.size(); ++i) sources_[i] = {program->first_receive(i, elements), {}};
}

void Cursor::begin(Buffer work) {
  work_ = std::move(work);
  has_begun_ = true;
}

void Cursor::close() {
  work_ = {};
  has_begun_ = false;
  for (Source& source : sources_) {
    while (!source.arrived.empty()) arrived_->pop(source.arrived);
  }
}

uint64_t Cursor::expected_bytes(uint32_t source) const {
  return sources_[source].next_receive == Program::kNone ? 0 : bytes_of(next_receive(source));
}

void Cursor::add(uint32_t source, Buffer slice) {
  Source& from = sources_[source];
  from.next_receive = program_->next_receive(from.next_receive, elements_);
  arrived_->push(from.arrived, std::move(slice));
}

Cursor::Outcome Cursor::advance(const kernels::Kernels& kernels) {
  for (; next_ < program_->operations().size(); ++next_) {
    const Program::Operation& operation = program_->operations()[next_];
    const Program::Range range = program_->range_of(operation, elements_);
    if (range.count == 0) continue;
    if (operation.kind == OpKind::kSend) {
      ++next_;
      return {Event::kSend, &operation, work_.slice(range.first * size_of(type_), range.count * size_of(type_))};
    }
    if (sources_[operation.source].arrived.empty()) return {Event::kBlocked, &operation, {}};
    receive(operation, range, kernels);
    ++next_;
    return {Event::kReceived, &operation, {}};
  }
  return {};
}

void Cursor::receive(const Program::Operation& operation, const Program::Range& range,
                     const kernels::Kernels& kernels) {
  const Buffer slice = arrived_->pop(sources_[operation.source].arrived);
  std::byte* const own = work_.bytes().data() + range.first * size_of(type_);
  if (operation.kind == OpKind::kReceiveCopy) {
    std::memcpy(own, slice.bytes().data(), slice.size());
    return;
  }
  const std::array<const std::byte*, 2> sources = {own, slice.bytes().data()};
  kernels.sum(type_, sources, own, range.count, 1);
}

}  // namespace gleaner::collective
