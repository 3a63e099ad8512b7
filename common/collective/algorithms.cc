#include "common/collective/algorithms.h"

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/collective/bcube.h"
#include "common/collective/blueconnect.h"
#include "common/collective/double_tree.h"
#include "common/collective/gather.h"
#include "common/collective/groups.h"
#include "common/collective/halving_doubling.h"
#include "common/collective/racks.h"
#include "common/collective/ring.h"
#include "common/collective/two_level.h"

namespace gleaner::collective {
namespace {

struct Algorithm {
  absl::string_view name;
  bool stages = false, radix = false, blocks = false, groups = false, masters = false;  // its parameters
  absl::StatusOr<Schedule> (*make)(const ScheduleRequest& request) = nullptr;
};

// `operations`: an upper bound, or nearly one, for the operations of a schedule.
absl::Status check_size(const ScheduleRequest& request, uint64_t operations) {
  if (operations <= kMaxOperations) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the schedule of ", request.algorithm, " among ", request.ranks,
                                                 " ranks has about ", operations, " operations; at most ",
                                                 kMaxOperations, " are supported: give fewer ranks"));
}

// Checks that the stages multiply to the number of ranks.
absl::Status check_product(const ScheduleRequest& request) {
  uint64_t product = 1;
  for (const uint32_t factor : request.stages) {
    if (factor == 0) return absl::InvalidArgumentError("a stage is 0; give 1 or more");
    product = std::min<uint64_t>(product * factor, uint64_t{1} << 32);
  }
  if (product == request.ranks) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the stages ", absl::StrJoin(request.stages, ","), " make ",
                   product == uint64_t{1} << 32 ? "2^32 or more" : absl::StrCat(product), " ranks, but there are ",
                   request.ranks, "; give factors of ", request.ranks, ", for example ",
                   request.ranks == 1 ? "1" : absl::StrJoin(prime_factors(request.ranks), ",")));
}

// Returns the groups of a request. Empty: it has neither groups nor stages.
absl::StatusOr<Stage> groups_of(const ScheduleRequest& request) {
  if (!request.groups.empty()) {
    if (!request.stages.empty()) return absl::InvalidArgumentError("give either stages or groups");
    GLN_RETURN_IF_ERROR(check_groups(request.groups, request.ranks));
    return request.groups;
  }
  if (request.stages.empty()) return Stage();
  GLN_RETURN_IF_ERROR(check_product(request));
  if (request.stages.size() != 2) {
    return absl::InvalidArgumentError(absl::StrCat(request.algorithm, " has ", request.stages.size(),
                                                   " stages; give two: the number of groups, and the ranks in each"));
  }
  return even_groups(request.ranks, request.stages[0]);
}

uint64_t square(uint64_t value) { return value * value; }

absl::StatusOr<Schedule> make_ring(const ScheduleRequest& request) {
  GLN_RETURN_IF_ERROR(check_size(request, 4 * square(request.ranks)));
  return ring(request.ranks);
}

absl::StatusOr<Schedule> make_halving_doubling(const ScheduleRequest& request) {
  return halving_doubling(request.ranks);  // at most 4.2 million operations
}

absl::StatusOr<Schedule> make_double_tree(const ScheduleRequest& request) {
  const uint32_t blocks = request.blocks == 0 ? kDefaultTreeBlocks : request.blocks;
  GLN_RETURN_IF_ERROR(check_size(request, uint64_t{8} * request.ranks * blocks));
  return double_tree(request.ranks, blocks);
}

absl::StatusOr<Schedule> make_gather(const ScheduleRequest& request) {
  return gather(request.ranks);  // at most 6.3 million operations
}

absl::StatusOr<Schedule> make_bcube(const ScheduleRequest& request) {
  const uint32_t radix = request.radix == 0 ? default_radix(request.ranks) : request.radix;
  if (radix >= 2 && radix <= request.ranks) {  // else bcube() makes an error or no operation
    const uint64_t rounds = std::bit_width(request.ranks) / (std::bit_width(radix) - 1);
    GLN_RETURN_IF_ERROR(check_size(request, 4 * rounds * request.ranks * radix));
  }
  return bcube(request.ranks, radix);
}

absl::StatusOr<Schedule> make_blueconnect(const ScheduleRequest& request) {
  std::vector<uint32_t> factors = request.stages;
  if (factors.empty()) factors = prime_factors(request.ranks);
  if (!request.stages.empty()) GLN_RETURN_IF_ERROR(check_product(request));
  std::erase(factors, 1u);
  uint64_t operations = 0;
  for (const uint32_t factor : factors) {
    operations += uint64_t{4} * request.ranks * (std::has_single_bit(factor) ? std::bit_width(factor) : factor);
  }
  GLN_RETURN_IF_ERROR(check_size(request, operations));
  return blueconnect(factors);
}

absl::StatusOr<Schedule> make_racks(const ScheduleRequest& request) {
  GLN_ASSIGN_OR_RETURN(const Stage groups, groups_of(request));
  if (groups.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "racks needs the stages RACKS,HOSTS: the number of racks, and the ranks in each, whose product is ",
        request.ranks));
  }
  GLN_RETURN_IF_ERROR(check_size(request, 4 * (request.ranks + square(groups.size()))));
  return racks(request.ranks, groups);
}

absl::StatusOr<Schedule> make_two_level(const ScheduleRequest& request) {
  GLN_ASSIGN_OR_RETURN(Stage groups, groups_of(request));
  if (groups.empty()) groups = even_groups(request.ranks, default_groups(request.ranks));
  uint64_t operations = uint64_t{4} * request.ranks * groups.size();
  for (const std::vector<uint32_t>& group : groups) operations += 4 * square(group.size());
  if (request.global_chunks.empty() && request.local_chunks.empty()) {
    GLN_RETURN_IF_ERROR(check_size(request, operations));
    return two_level(request.ranks, groups);
  }
  const MasterCounts counts{request.global_chunks, request.local_chunks};
  GLN_RETURN_IF_ERROR(check_masters(counts, request.ranks, groups));
  const uint64_t chunks = std::accumulate(counts.global.begin(), counts.global.end(), uint64_t{0});
  GLN_RETURN_IF_ERROR(check_size(request, 3 * operations + 4 * chunks * groups.size()));
  return two_level(request.ranks, groups, &counts);
}

constexpr Algorithm kAlgorithms[] = {
    {.name = "ring", .make = make_ring},
    {.name = "halving-doubling", .make = make_halving_doubling},
    {.name = "double-tree", .blocks = true, .make = make_double_tree},
    {.name = "bcube", .radix = true, .make = make_bcube},
    {.name = "blueconnect", .stages = true, .make = make_blueconnect},
    {.name = "gather", .make = make_gather},
    {.name = "racks", .stages = true, .groups = true, .make = make_racks},
    {.name = "two-level", .stages = true, .groups = true, .masters = true, .make = make_two_level},
};

constexpr auto kNames = [] {
  std::array<absl::string_view, std::size(kAlgorithms)> names;
  for (size_t i = 0; i < names.size(); ++i) names[i] = kAlgorithms[i].name;
  return names;
}();

// Refuses parameters that the algorithm would ignore.
absl::Status check_parameters(const ScheduleRequest& request, const Algorithm& algorithm) {
  const struct {
    absl::string_view name;
    bool given;
    bool Algorithm::*taken;
  } parameters[] = {{"stages", !request.stages.empty(), &Algorithm::stages},
                    {"radix", request.radix != 0, &Algorithm::radix},
                    {"blocks", request.blocks != 0, &Algorithm::blocks},
                    {"groups", !request.groups.empty(), &Algorithm::groups},
                    {"masters", !request.global_chunks.empty() || !request.local_chunks.empty(), &Algorithm::masters}};
  for (const auto& parameter : parameters) {
    if (!parameter.given || algorithm.*parameter.taken) continue;
    std::vector<absl::string_view> takers;
    for (const Algorithm& other : kAlgorithms) {
      if (other.*parameter.taken) takers.push_back(other.name);
    }
    return absl::InvalidArgumentError(absl::StrCat(algorithm.name, " has no ", parameter.name, "; only ",
                                                   absl::StrJoin(takers, ", "), takers.size() == 1 ? " has" : " have"));
  }
  return absl::OkStatus();
}

}  // namespace

std::span<const absl::string_view> algorithms() { return kNames; }

bool takes_groups(absl::string_view algorithm) {
  return std::ranges::any_of(kAlgorithms,
                             [&](const Algorithm& known) { return known.name == algorithm && known.groups; });
}

absl::StatusOr<Schedule> make_schedule(const ScheduleRequest& request) {
  const auto* algorithm = std::find_if(std::begin(kAlgorithms), std::end(kAlgorithms),
                                       [&](const Algorithm& known) { return known.name == request.algorithm; });
  if (algorithm == std::end(kAlgorithms)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the algorithm '", request.algorithm, "' is unknown; give one of ", absl::StrJoin(kNames, ", ")));
  }
  if (request.ranks < 1 || request.ranks > kMaxRanks) {
    return absl::InvalidArgumentError(
        absl::StrCat("the number of ranks is ", request.ranks, "; give 1 to ", kMaxRanks));
  }
  GLN_RETURN_IF_ERROR(check_parameters(request, *algorithm));
  return algorithm->make(request);
}

}  // namespace gleaner::collective
