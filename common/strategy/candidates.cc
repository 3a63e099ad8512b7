#include "common/strategy/candidates.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "common/base/status_macros.h"
#include "common/collective/algorithms.h"
#include "common/collective/cost.h"
#include "common/collective/summary.h"
#include "common/plan/partitioner.h"
#include "common/plan/schedule_name.h"
#include "common/plan/uplinks.h"
#include "common/strategy/factorizations.h"
#include "common/strategy/rack_times.h"

namespace gleaner::strategy {
namespace {

constexpr uint64_t kScheduleProbeBytes = uint64_t{1} << 30;  // large, so that rounding to whole bytes does not count

// The hosts of the workers, for the models of all candidates.
struct PlacedWorkers {
  std::shared_ptr<const topology::Network> network;
  std::vector<uint32_t> host_of;  // by rank
  std::vector<double> worker_bits_per_second;
  double round_trip_seconds = 0;  // between the farthest workers
};

absl::StatusOr<PlacedWorkers> place(const topology::Network& network, uint32_t workers) {
  GLN_ASSIGN_OR_RETURN(const plan::Fleet fleet, plan::fleet_of(network.topology, workers, 0));
  const double farthest = workers > 1 ? farthest_latency(network, workers, workers) : 0;
  return PlacedWorkers{std::make_shared<const topology::Network>(network), std::vector<uint32_t>(workers),
                       fleet.worker_bits_per_second, 2 * farthest};
}

// Returns the seconds per byte of the vector that the busiest channel needs for all messages of the schedule.
double busiest_channel(const collective::Schedule& schedule, std::span<const collective::StepPattern> patterns,
                       const PlacedWorkers& placed) {
  std::vector<double> load(placed.network->topology.channel_count());  // in vectors
  std::vector<uint32_t> path;
  for (const collective::StepPattern& pattern : patterns) {
    for (const collective::Transfer& transfer : pattern.transfers) {
      const uint32_t from = placed.host_of[transfer.from], to = placed.host_of[transfer.to];
      path.clear();
      placed.network->paths.append_path(from, to, collective::flow_between(from, to), path);
      const double share = static_cast<double>(transfer.chunks) / schedule.chunks_per_block();
      for (const uint32_t channel : path) load[channel] += share * static_cast<double>(pattern.steps.size());
    }
  }
  double busiest = 0;
  for (uint32_t channel = 0; channel < load.size(); ++channel) {
    busiest = std::max(busiest, load[channel] * 8 / placed.network->topology.bits_per_second(channel));
  }
  return busiest;
}

// Returns how long the slowest processor takes for all messages of a partition.
double busiest_processor(const collective::Schedule& schedule, const PlacedWorkers& placed) {
  double slowest = 0;
  for (uint32_t rank = 0; rank < schedule.ranks; ++rank) {
    const topology::Host& host = placed.network->topology.hosts()[placed.host_of[rank]];
    slowest = std::max(slowest, static_cast<double>(schedule.programs[rank].size()) * host.overhead_seconds);
  }
  return slowest;
}

// The widths in which values travel, in those of the tensor's type.
struct Widths {
  uint32_t partial_sum = 1;
  uint32_t contribution = 1;
};

constexpr uint32_t kNarrowWidth = size_of(accumulator_of(DataType::kFloat16)) / size_of(DataType::kFloat16);
constexpr Widths kNarrow = {.partial_sum = kNarrowWidth};
constexpr Widths kNarrowWithWidePushes = {.partial_sum = kNarrowWidth, .contribution = kNarrowWidth};

// Returns the largest message of a schedule, in vectors of the tensor's type.
double largest_message(const collective::Schedule& schedule, uint32_t partial_width) {
  uint64_t largest = 0;
  for (const std::vector<collective::Op>& program : schedule.programs) {
    for (const collective::Op& op : program) {
      const uint32_t width = op.take == collective::Take::kReduce ? partial_width : 1;
      largest = std::max(largest, uint64_t{width} * op.slice.count);
    }
  }
  return static_cast<double>(largest) / schedule.chunks_per_block();
}

absl::StatusOr<Model> model_of(const std::shared_ptr<const collective::Schedule>& made, const PlacedWorkers& placed,
                               const Widths& widths) {
  const collective::Schedule& schedule = *made;
  GLN_ASSIGN_OR_RETURN(const auto patterns, collective::step_patterns(schedule, widths.partial_sum));
  const auto cost_of = [&](uint64_t bytes) {
    return collective::cost(schedule, patterns, *placed.network, placed.host_of, bytes);
  };
  GLN_ASSIGN_OR_RETURN(const auto empty, cost_of(0));
  GLN_ASSIGN_OR_RETURN(const auto large, cost_of(kScheduleProbeBytes));
  // An all-gather moves contributions, and an all-reduce sums.
  const bool gathers = schedule.postcondition == collective::Postcondition::kAllGather;
  const double width = gathers ? widths.contribution : 1;
  Model model{
      .latency_seconds = empty.seconds,
      .alone_seconds_per_byte = width * (large.seconds - empty.seconds) / static_cast<double>(kScheduleProbeBytes),
      .stream_seconds_per_byte = width * busiest_channel(schedule, patterns, placed),
      .processor_seconds = busiest_processor(schedule, placed),
      .message_bytes = width * largest_message(schedule, widths.partial_sum),
      .push_bytes = static_cast<double>(widths.contribution),
      .link_bits_per_second = *std::ranges::min_element(placed.worker_bits_per_second)};
  model.schedule =
      ScheduleTimes::make({.schedule = made,
                           .network = placed.network,
                           .host_of = placed.host_of,
                           .worker_bits_per_second = placed.worker_bits_per_second,
                           .round_trip_seconds = placed.round_trip_seconds,
                           .partial_width = widths.partial_sum,
                           .width = width,
                           .element_bytes = static_cast<uint32_t>(size_of(DataType::kFloat32)) / widths.partial_sum,
                           .stream_seconds_per_byte = model.stream_seconds_per_byte});
  return model;
}

// Returns the candidate of a schedule, on the hosts that its ranks say.
absl::StatusOr<Candidate> schedule_candidate(collective::Spec spec, PlacedWorkers& placed) {
  std::iota(placed.host_of.begin(), placed.host_of.end(), 0);
  for (uint32_t worker = 0; worker < spec.rank_of.size(); ++worker) placed.host_of[spec.rank_of[worker]] = worker;
  const auto workers = static_cast<uint32_t>(placed.host_of.size());
  GLN_ASSIGN_OR_RETURN(collective::Schedule made, collective::make_schedule(spec, workers));
  const auto schedule = std::make_shared<const collective::Schedule>(std::move(made));
  GLN_ASSIGN_OR_RETURN(Model model, model_of(schedule, placed, {}));
  GLN_ASSIGN_OR_RETURN(Model narrow, model_of(schedule, placed, kNarrow));
  Model wide = narrow;
  wide.push_bytes = kNarrowWithWidePushes.contribution;
  if (schedule->postcondition == collective::Postcondition::kAllGather) {  // only then contributions travel as they are
    GLN_ASSIGN_OR_RETURN(wide, model_of(schedule, placed, kNarrowWithWidePushes));
  }
  return Candidate{std::move(spec), std::move(model), std::move(narrow), std::move(wide), cut_of(*schedule), {}};
}

// Returns the candidate of a schedule, on the hosts that its entry in `mapped` says, if it has one.
absl::StatusOr<Candidate> schedule_candidate(collective::Spec spec, PlacedWorkers& placed,
                                             std::span<const MappedSpec> mapped) {
  const auto is_of_spec = [&](const MappedSpec& entry) {
    return entry.spec.algorithm == spec.algorithm && entry.spec.factors == spec.factors &&
           entry.spec.radix == spec.radix && entry.spec.group_sizes == spec.group_sizes;
  };
  const auto entry = std::ranges::find_if(mapped, is_of_spec);
  if (entry == mapped.end()) return schedule_candidate(std::move(spec), placed);
  GLN_ASSIGN_OR_RETURN(Candidate candidate, schedule_candidate(entry->spec, placed));
  candidate.mapped = entry->times;
  return candidate;
}

absl::StatusOr<Model> model_of_summers(const PlacedWorkers& placed, uint32_t workers, uint32_t summers,
                                       const Widths& widths) {
  GLN_ASSIGN_OR_RETURN(OwnerTimes times,
                       OwnerTimes::make(placed.network->topology, workers, summers, widths.contribution));
  Model model;
  if (workers > 1) {
    model.latency_seconds = 2 * farthest_latency(*placed.network, workers, workers + summers);
  }
  const auto probe = static_cast<double>(kScheduleProbeBytes);
  model.alone_seconds_per_byte = times.seconds(probe, probe, probe) / probe;
  model.stream_seconds_per_byte = times.stream_seconds_per_byte(probe);
  model.message_bytes = model.push_bytes = widths.contribution;
  model.owners = std::make_shared<const OwnerTimes>(std::move(times));
  return model;
}

absl::StatusOr<Candidate> summers_of(const PlacedWorkers& placed, uint32_t workers, uint32_t summers) {
  GLN_ASSIGN_OR_RETURN(Model model, model_of_summers(placed, workers, summers, {}));
  GLN_ASSIGN_OR_RETURN(Model narrow, model_of_summers(placed, workers, summers, kNarrow));
  GLN_ASSIGN_OR_RETURN(Model wide, model_of_summers(placed, workers, summers, kNarrowWithWidePushes));
  return Candidate{{}, std::move(model), std::move(narrow), std::move(wide)};
}

// The bytes of the tensors for which stages of BlueConnect are compared, and how many of the best ones are candidates.
struct StagesFor {
  double bytes;
  size_t most;
};
constexpr StagesFor kStagesFor[] = {{double{1 << 30}, 8}, {double{64 << 10}, 4}};
constexpr size_t kLookedAt = 64;  // of the best ones, among which are some with equal steps

// Returns the fewest factors, but at least two, whose stages have the same steps. A stage of 2^k ranks halves in k
// steps, which are those of k stages of two ranks. So adjacent powers of two are multiplied.
std::vector<uint32_t> fewest_stages(const std::vector<uint32_t>& factors) {
  std::vector<uint32_t> merged;
  for (const uint32_t factor : factors) {
    if (!merged.empty() && std::has_single_bit(merged.back()) && std::has_single_bit(factor)) {
      merged.back() *= factor;
    } else {
      merged.push_back(factor);
    }
  }
  if (merged.size() == 1) merged = {2, merged[0] / 2};
  return merged;
}

// The stages of BlueConnect: what they take on a network, by Eq. 7.
class Stages {
 public:
  explicit Stages(const PlacedWorkers& placed) : placed_(placed), load_(placed.network->topology.channel_count()) {}

  // Returns the factorizations of the number of workers with which BlueConnect is fastest for tensors of some size.
  std::vector<std::vector<uint32_t>> best() {
    const auto ranks = static_cast<uint32_t>(placed_.host_of.size());
    std::vector<std::vector<uint32_t>> all;
    for (const StagesFor& size : kStagesFor) {
      const auto some = best_factorizations(
          ranks, kLookedAt, [&](uint32_t below, uint32_t factor) { return seconds(below, factor, size.bytes); });
      std::vector<std::vector<uint32_t>> of_size;
      for (const std::vector<uint32_t>& factors : some) {
        std::vector<uint32_t> stages = fewest_stages(factors);
        if (of_size.size() == size.most) break;
        if (std::ranges::find(of_size, stages) == of_size.end()) of_size.push_back(std::move(stages));
      }
      for (std::vector<uint32_t>& stages : of_size) {
        if (std::ranges::find(all, stages) == all.end()) all.push_back(std::move(stages));
      }
    }
    return all;
  }

 private:
  struct Ring {
    double latency_seconds = 0;
    double seconds_per_byte = 0;  // of the busiest channel, while each rank sends to the next one of its group
  };

  // One term of BlueConnect's Eq. 7. The bandwidth that a rank has at this stage, there the least of those of the tiers
  // below, is that of the busiest channel. A stage that halves has the steps of stages of two ranks.
  double seconds(uint32_t below, uint32_t factor, double bytes) {
    if (factor > 2 && std::has_single_bit(factor)) {
      return seconds(below, 2, bytes) + seconds(2 * below, factor / 2, bytes);
    }
    const Ring& ring = ring_of(below, factor);
    return 2 * (factor - 1) * (ring.latency_seconds + bytes / below / factor * ring.seconds_per_byte);
  }

  const Ring& ring_of(uint32_t below, uint32_t factor) {
    const auto [found, is_new] = rings_.try_emplace({below, factor});
    Ring& ring = found->second;
    if (!is_new) return ring;
    std::ranges::fill(load_, 0);
    for (uint32_t rank = 0; rank < placed_.host_of.size(); ++rank) {
      const bool last = rank / below % factor == factor - 1;
      const uint32_t next = last ? rank - (factor - 1) * below : rank + below;
      const uint32_t from = placed_.host_of[rank], to = placed_.host_of[next];
      path_.clear();
      placed_.network->paths.append_path(from, to, collective::flow_between(from, to), path_);
      const std::vector<topology::Host>& hosts = placed_.network->topology.hosts();
      double latency = hosts[from].overhead_seconds + hosts[to].overhead_seconds;
      for (const uint32_t channel : path_) {
        latency += placed_.network->topology.latency_seconds(channel);
        load_[channel] += 8 / placed_.network->topology.bits_per_second(channel);
        ring.seconds_per_byte = std::max(ring.seconds_per_byte, load_[channel]);
      }
      ring.latency_seconds = std::max(ring.latency_seconds, latency);
    }
    return ring;
  }

  const PlacedWorkers& placed_;
  std::vector<double> load_;  // by channel
  std::vector<uint32_t> path_;
  std::map<std::pair<uint32_t, uint32_t>, Ring> rings_;  // by `below` and the factor
};

// Appends the schedules whose groups are the racks, if a rack has several workers.
void add_grouped(const collective::Groups& racks, std::vector<collective::Spec>& all) {
  std::vector<uint32_t> sizes;
  for (const std::vector<uint32_t>& rack : racks) sizes.push_back(static_cast<uint32_t>(rack.size()));
  if (sizes.size() == std::accumulate(sizes.begin(), sizes.end(), 0u)) return;
  const std::vector<uint32_t> factors = equal_stages(racks);
  for (const char* const algorithm : {"racks", "two-level"}) {
    collective::Spec& spec = all.emplace_back(collective::Spec{.algorithm = algorithm, .factors = factors});
    if (factors.empty()) spec.group_sizes = sizes;
  }
}

// Returns schedules that may serve n ranks.
std::vector<collective::Spec> possible_schedules(PlacedWorkers& placed) {
  const collective::Groups racks = racks_of(placed.network->topology, static_cast<uint32_t>(placed.host_of.size()));
  // Stages are compared with the ranks in the order of the racks, as rank maps put them.
  std::iota(placed.host_of.begin(), placed.host_of.end(), 0);
  auto next = placed.host_of.begin();
  for (const std::vector<uint32_t>& rack : racks) next = std::ranges::copy(rack, next).out;
  std::vector<collective::Spec> all;
  for (const char* const algorithm : {"gather", "ring", "halving-doubling", "double-tree", "bcube"}) {
    all.push_back({.algorithm = algorithm});
  }
  for (std::vector<uint32_t>& factors : Stages(placed).best()) {
    all.push_back({.algorithm = "blueconnect", .factors = std::move(factors)});
  }
  add_grouped(racks, all);
  return all;
}

}  // namespace

double Model::seconds(double bytes, double partition_bytes) const {
  return seconds(bytes, partition_bytes, std::min(bytes, partition_bytes));
}

double Model::seconds(double bytes, double partition_bytes, double least_bytes) const {
  if (owners != nullptr) return latency_seconds + factor * owners->seconds(bytes, partition_bytes, least_bytes);
  if (schedule != nullptr) return factor * schedule->seconds(bytes, partition_bytes);
  const double alone = std::min(bytes, partition_bytes);
  return latency_seconds + alone_seconds_per_byte * alone + stream_seconds(partition_bytes) * (bytes - alone);
}

double Model::stream_seconds(double partition_bytes) const {
  if (owners != nullptr) return factor * owners->stream_seconds_per_byte(partition_bytes);
  if (schedule != nullptr) return factor * schedule->stream_seconds_per_byte(partition_bytes);
  const double window = plan::schedule_limits(partition_bytes, link_bits_per_second, 0).in_flight;
  const double least = std::max(stream_seconds_per_byte, processor_seconds / partition_bytes);
  return std::max(least, (latency_seconds + alone_seconds_per_byte * partition_bytes) / window);
}

void Model::multiply(double by) {
  latency_seconds *= by;
  alone_seconds_per_byte *= by;
  stream_seconds_per_byte *= by;
  processor_seconds *= by;
  factor *= by;
}

bool Model::fits(double partition_bytes) const { return message_bytes * partition_bytes <= plan::kMaxPartitionBytes; }

plan::ScheduleCut cut_of(const collective::Schedule& schedule) {
  plan::ScheduleCut cut{.slices = collective::slices_per_vector(schedule)};
  if (schedule.postcondition != collective::Postcondition::kAllGather) return cut;
  cut.has_partial_sums = false;
  for (const std::vector<collective::Op>& program : schedule.programs) {
    for (const collective::Op& op : program) cut.blocks = std::max(cut.blocks, op.slice.count);
  }
  return cut;
}

std::string name_of(const Candidate& candidate) { return plan::name_of(candidate.schedule); }

double farthest_latency(const topology::Network& network, uint32_t workers, uint32_t members) {
  double most = 0;
  std::vector<uint32_t> path;
  for (uint32_t from = 0; from < workers; ++from) {
    for (uint32_t to = 0; to < members; ++to) {
      path.clear();
      network.paths.append_path(from, to, collective::flow_between(from, to), path);
      double latency = 0;
      for (const uint32_t channel : path) latency += network.topology.latency_seconds(channel);
      most = std::max(most, latency);
    }
  }
  return most;
}

absl::StatusOr<Candidate> candidate_of(const topology::Network& network, uint32_t workers,
                                       const collective::Spec& schedule) {
  GLN_ASSIGN_OR_RETURN(PlacedWorkers placed, place(network, workers));
  return schedule_candidate(schedule, placed);
}

absl::StatusOr<Candidate> candidate_of_summers(const topology::Network& network, uint32_t workers, uint32_t summers) {
  GLN_ASSIGN_OR_RETURN(const PlacedWorkers placed, place(network, workers));
  return summers_of(placed, workers, summers);
}

absl::StatusOr<std::vector<Candidate>> candidates(const topology::Network& network, uint32_t workers, uint32_t summers,
                                                  std::span<const MappedSpec> mapped) {
  GLN_ASSIGN_OR_RETURN(PlacedWorkers placed, place(network, workers));
  GLN_ASSIGN_OR_RETURN(Candidate by_summers, summers_of(placed, workers, summers));
  std::vector<Candidate> all = {std::move(by_summers)};
  if (workers == 1) return all;
  for (collective::Spec& spec : possible_schedules(placed)) {
    // An algorithm that does not serve this number of ranks, or whose schedule would be too large, is no candidate.
    auto candidate = schedule_candidate(std::move(spec), placed, mapped);
    if (candidate.ok()) all.push_back(*std::move(candidate));
  }
  return all;
}

std::vector<double> seconds_of(std::span<const Candidate> candidates, double bytes, double partition_bytes,
                               const plan::Encoding& types) {
  std::vector<double> seconds;
  for (const Candidate& each : candidates) {
    seconds.push_back(each.serves(types.result) ? each.model_of(types).seconds(bytes, partition_bytes)
                                                : std::numeric_limits<double>::infinity());
  }
  return seconds;
}

uint64_t partition_bytes_of(const Candidate& candidate, const NewTensor& tensor) {
  const Model& model = candidate.model_of(tensor.types);
  const uint64_t size =
      tensor.asked > 0 ? tensor.asked : plan::sliced_partition_bytes(tensor.by_default, candidate.cut.slices);
  return static_cast<uint64_t>(
      std::min(static_cast<double>(size) / model.push_bytes, plan::kMaxPartitionBytes / model.message_bytes));
}

std::vector<double> seconds_of_new(std::span<const Candidate> candidates, const NewTensor& tensor) {
  const uint64_t size = tensor.asked > 0 ? tensor.asked : tensor.by_default;
  const uint64_t least = plan::least_slice_bytes(size, tensor.by_default);
  std::vector<double> seconds;
  for (const Candidate& each : candidates) {
    const auto partition_bytes = static_cast<double>(partition_bytes_of(each, tensor));
    const Model& model = each.model_of(tensor.types);
    seconds.push_back(each.serves(tensor.types.result) ? model.seconds(static_cast<double>(tensor.bytes),
                                                                       partition_bytes, static_cast<double>(least))
                                                       : std::numeric_limits<double>::infinity());
  }
  return seconds;
}

size_t fastest(std::span<const double> seconds) {
  return static_cast<size_t>(std::ranges::min_element(seconds) - seconds.begin());
}

size_t best(std::span<const double> seconds) {
  const size_t least = fastest(seconds);
  return seconds.front() >= kNeededGain * seconds[least] ? least : 0;
}

}  // namespace gleaner::strategy
