#include "tests/protocol_sim/accumulated_sums.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "tests/protocol_sim/oracle.h"

namespace gleaner::sim {

const std::vector<uint32_t>& AccumulatedSums::sum_of_first(uint32_t tensor, uint32_t worker, uint64_t count) {
  const plan::Tensor& what = scenario_->tensors[tensor];
  auto& sums = sums_[{tensor, worker}];
  if (sums.empty()) sums.emplace_back(what.elements);
  while (sums.size() <= count) {
    std::vector<uint32_t> next = sums.back();
    const auto bytes = contribution(scenario_->seed, what, tensor, sums.size() - 1, worker);
    for (size_t i = 0; i < next.size(); ++i) {
      uint32_t element = 0;
      std::memcpy(&element, bytes.data() + i * sizeof(element), sizeof(element));
      next[i] += element;
    }
    sums.push_back(std::move(next));
  }
  return sums[count];
}

void AccumulatedSums::hear(const plan::Plan& plan, uint32_t tensor, uint32_t worker, const wire::Header& header,
                           const Buffer& payload) {
  const plan::Tensor& what = scenario_->tensors[tensor];
  const plan::Partition& partition = plan.partitions_of(header.tensor)[header.partition];
  if (payload.size() != plan.answer_bytes(partition)) return report_->fail("an answer of ", payload.size(), " bytes");
  std::vector<uint64_t> counts(plan.workers);
  std::memcpy(counts.data(), payload.bytes().data() + partition.bytes, counts.size() * sizeof(uint64_t));
  ++report_->coverage.accumulated;
  if (counts[worker] != header.step + 1) {
    return report_->fail("worker ", worker, " is answered with ", counts[worker], " of its contributions, expected ",
                         header.step + 1);
  }
  const uint64_t least = *std::ranges::min_element(counts);
  if (what.staleness != plan::kUnbounded && least + what.staleness < header.step) {
    return report_->fail("worker ", worker, " is answered at step ", header.step, " when ", least,
                         " contributions of another are in");
  }
  std::vector<uint32_t> expected(partition.bytes / sizeof(uint32_t));
  for (uint32_t from = 0; from < plan.workers; ++from) {
    const std::vector<uint32_t>& whole = sum_of_first(tensor, from, counts[from]);
    for (size_t i = 0; i < expected.size(); ++i) expected[i] += whole[partition.offset / sizeof(uint32_t) + i];
  }
  if (std::memcmp(expected.data(), payload.bytes().data(), partition.bytes) != 0) {
    return report_->fail("worker ", worker, " gets an answer whose sum does not match its counts, tensor ", tensor);
  }
  Heard& heard = heard_[{worker, tensor, header.partition}];
  if (header.step > heard.step) heard = {header.step, {}};
  if (header.step < heard.step) return;
  const auto sum = payload.bytes().first(partition.bytes);
  heard.answers.emplace_back(std::accumulate(counts.begin(), counts.end(), uint64_t{0}),
                             std::vector<std::byte>(sum.begin(), sum.end()));
}

void AccumulatedSums::check_output(const plan::Plan& plan, uint32_t planned, uint32_t tensor, uint32_t worker,
                                   uint64_t step, MutableBytes output) {
  const auto partitions = plan.partitions_of(planned);
  for (uint32_t i = 0; i < partitions.size(); ++i) {
    const Heard& heard = heard_[{worker, tensor, i}];
    const auto part = output.subspan(partitions[i].offset, partitions[i].bytes);
    const auto found = std::ranges::find_if(
        heard.answers, [&](const auto& answer) { return std::ranges::equal(answer.second, part); });
    if (heard.step != step || found == heard.answers.end()) {
      return report_->fail("worker ", worker, " has an output that no answer contained, tensor ", tensor, " step ",
                           step);
    }
    uint64_t& highest = highest_[{tensor, i}];
    highest = std::max(highest, found->first);
  }
}

void AccumulatedSums::check_end() const {
  for (const auto& [place, version] : highest_) {
    const uint64_t all = uint64_t{scenario_->job.workers} * scenario_->steps;
    if (version == all) continue;
    report_->fail("tensor ", place.first, " partition ", place.second, " has the last version ", version,
                  ", expected all ", all, " contributions");
  }
}

}  // namespace gleaner::sim
