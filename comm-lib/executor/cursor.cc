#include "comm-lib/executor/cursor.h"

#include <array>
#include <cstring>
#include <utility>

namespace gleaner::executor {

void Cursor::open(const Program* program, uint64_t elements, const Types& types, ArrivedSlices* arrived) {
  elements_ = elements;
  types_ = types;
  layout_ = program->layout_of(elements);
  open(program, arrived);
}

void Cursor::open(const Program* program, std::span<const uint64_t> begins, ArrivedSlices* arrived) {
  begins_.assign(begins.begin(), begins.end());
  elements_ = begins.back();
  types_ = {wire::kNoType, wire::kNoType};
  layout_ = Layout(begins_);
  open(program, arrived);
}

void Cursor::open(const Program* program, ArrivedSlices* arrived) {
  program_ = program;
  arrived_ = arrived;
  has_begun_ = false;
  next_ = 0;
  sources_.resize(program->sources());
  for (uint32_t i = 0; i < sources_.size(); ++i) sources_[i] = {program->first_receive(i, layout_), {}};
}

void Cursor::begin(ConstBytes contribution, uint32_t worker, uint32_t divisor, BufferPool& pool,
                   const kernels::Kernels& kernels) {
  divisor_ = divisor;
  has_begun_ = true;
  if (program_->gathers()) {
    work_ = pool.take(contribution.size() * program_->blocks().size());
    std::memcpy(work_.bytes().data() + contribution.size() * program_->blocks()[worker], contribution.data(),
                contribution.size());
    return;
  }
  work_ = pool.take(elements_ * size_of(types_.partial()));
  results_ = types_.result == types_.partial() ? work_ : pool.take(elements_ * size_of(types_.result));
  if (types_.contribution == types_.partial()) {
    std::memcpy(work_.bytes().data(), contribution.data(), contribution.size());
  } else {
    const std::array<const std::byte*, 1> sources = {contribution.data()};
    kernels.sum(types_.contribution, types_.partial(), sources, work_.bytes().data(), elements_, 1);
  }
}

void Cursor::begin(Buffer work, std::span<std::byte* const> places) {
  has_begun_ = true;
  work_ = std::move(work);
  places_.assign(places.begin(), places.end());
}

void Cursor::close() {
  work_ = {};
  results_ = {};
  places_.clear();
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
  from.next_receive = program_->next_receive(from.next_receive, layout_);
  arrived_->push(from.arrived, std::move(slice));
}

Cursor::Outcome Cursor::advance(const kernels::Kernels& kernels) {
  for (; next_ < program_->operations().size(); ++next_) {
    const Program::Operation& operation = program_->operations()[next_];
    const Layout::Range range = layout_.range_of(operation.slice);
    if (range.count == 0) continue;
    if (operation.kind == Program::Kind::kFinish) {
      finish(range, kernels);
      continue;
    }
    if (operation.kind == Program::Kind::kSend) {
      ++next_;
      const uint64_t size = width_of(operation);
      return {Event::kSend, &operation, buffer_of(operation).slice(range.first * size, range.count * size)};
    }
    if (sources_[operation.source].arrived.empty()) return {Event::kBlocked, &operation, {}};
    receive(operation, range, kernels);
    ++next_;
    return {Event::kReceived, &operation, {}};
  }
  return {};
}

void Cursor::receive(const Program::Operation& operation, const Layout::Range& range, const kernels::Kernels& kernels) {
  const Buffer slice = arrived_->pop(sources_[operation.source].arrived);
  if (!places_.empty()) return place(operation.slice, slice);
  const DataType type = type_of(operation);
  std::byte* const own = buffer_of(operation).bytes().data() + range.first * width_of(operation);
  if (operation.kind == Program::Kind::kCopy) {
    std::memcpy(own, slice.bytes().data(), slice.size());
    return;
  }
  const std::array<const std::byte*, 2> sources = {own, slice.bytes().data()};
  kernels.sum(type, sources, own, range.count, 1);
}

// Copies the chunks of a call that have arrived to their places.
void Cursor::place(const collective::Slice& chunks, const Buffer& slice) {
  const std::byte* from = slice.bytes().data();
  for (uint32_t chunk = chunks.first; chunk < chunks.first + chunks.count; ++chunk) {
    const Layout::Range range = layout_.range_of({chunk, 1});
    std::byte* const to = places_[chunk] == nullptr ? work_.bytes().data() + range.first : places_[chunk];
    if (range.count > 0) std::memcpy(to, from, range.count);
    from += range.count;
  }
}

// Divides and rounds complete sums.
void Cursor::finish(const Layout::Range& range, const kernels::Kernels& kernels) {
  const std::array<const std::byte*, 1> sums = {work_.bytes().data() + range.first * size_of(types_.partial())};
  kernels.sum(types_.partial(), types_.result, sums, results_.bytes().data() + range.first * size_of(types_.result),
              range.count, divisor_);
}

void Cursor::write_result(std::byte* output, const kernels::Kernels& kernels) {
  if (!program_->gathers()) {
    std::memcpy(output, results_.bytes().data(), elements_ * size_of(types_.result));
    return;
  }
  const uint64_t block_bytes = elements_ * size_of(types_.contribution);
  contributions_.clear();
  for (const uint32_t block : program_->blocks()) {
    contributions_.push_back(work_.bytes().data() + block * block_bytes);
  }
  kernels.sum(types_.contribution, types_.result, contributions_, output, elements_, divisor_);
}

}  // namespace gleaner::executor
