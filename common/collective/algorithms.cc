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
#include "common/collective/binomial.h"
#include "common/collective/blueconnect.h"
#include "common/collective/direct.h"
#include "common/collective/double_tree.h"
#include "common/collective/gather.h"
#include "common/collective/groups.h"
#include "common/collective/halves.h"
#include "common/collective/halving_doubling.h"
#include "common/collective/racks.h"
#include "common/collective/ring.h"
#include "common/collective/two_level.h"

namespace gleaner::collective {
namespace {

struct Algorithm {
  Postcondition postcondition = Postcondition::kAllReduce;
  absl::string_view name;
  bool factors = false, radix = false, blocks = false, groups = false, masters = false;  // its parameters
  absl::StatusOr<Schedule> (*make)(const Spec& spec, const Collective& collective, OnlyRank only,
                                   SizeCheck check) = nullptr;
};

absl::Status check_size(const Spec& spec, uint32_t ranks, uint64_t operations) {
  if (operations <= kMaxOperations) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the schedule of ", spec.algorithm, " among ", ranks,
                                                 " ranks has about ", operations, " operations; at most ",
                                                 kMaxOperations, " are supported: give fewer ranks"));
}

// Checks that the factors multiply to the number of ranks.
absl::Status check_product(const Spec& spec, uint32_t ranks) {
  uint64_t product = 1;
  for (const uint32_t factor : spec.factors) {
    if (factor == 0) return absl::InvalidArgumentError("a stage is 0; give 1 or more");
    product = std::min<uint64_t>(product * factor, uint64_t{1} << 32);
  }
  if (product == ranks) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the stages ", absl::StrJoin(spec.factors, ","), " make ",
      product == uint64_t{1} << 32 ? "2^32 or more" : absl::StrCat(product), " ranks, but there are ", ranks,
      "; give factors of ", ranks, ", for example ", ranks == 1 ? "1" : absl::StrJoin(prime_factors(ranks), ",")));
}

// Returns the groups of a spec. Empty: it has neither groups nor factors.
absl::StatusOr<Groups> groups_of(const Spec& spec, uint32_t ranks) {
  if (!spec.group_sizes.empty()) {
    if (!spec.factors.empty()) return absl::InvalidArgumentError("give either stages or groups");
    Groups groups = groups_of_sizes(spec.group_sizes, ranks);
    GLN_RETURN_IF_ERROR(check_groups(groups, ranks));
    return groups;
  }
  if (spec.factors.empty()) return Groups();
  GLN_RETURN_IF_ERROR(check_product(spec, ranks));
  if (spec.factors.size() != 2) {
    return absl::InvalidArgumentError(absl::StrCat(spec.algorithm, " has ", spec.factors.size(),
                                                   " stages; give two: the number of groups, and the ranks in each"));
  }
  return even_groups(ranks, spec.factors[0]);
}

// The groups of racks and two-level without stages.
Groups default_groups_of(uint32_t ranks) { return even_groups(ranks, default_groups(ranks)); }

uint64_t square(uint64_t value) { return value * value; }

absl::StatusOr<Schedule> make_ring(const Spec&, const Collective& collective, OnlyRank only, SizeCheck check) {
  GLN_RETURN_IF_ERROR(check(4 * square(collective.ranks)));
  return ring(collective.ranks, only);
}

absl::StatusOr<Schedule> make_halving_doubling(const Spec&, const Collective& collective, OnlyRank only, SizeCheck) {
  return halving_doubling(collective.ranks, only);  // at most 4.2 million operations
}

absl::StatusOr<Schedule> make_double_tree(const Spec& spec, const Collective& collective, OnlyRank only,
                                          SizeCheck check) {
  const uint32_t blocks = spec.blocks == 0 ? kDefaultTreeBlocks : spec.blocks;
  GLN_RETURN_IF_ERROR(check(uint64_t{8} * collective.ranks * blocks));
  return double_tree(collective.ranks, blocks, only);
}

absl::StatusOr<Schedule> make_gather(const Spec&, const Collective& collective, OnlyRank only, SizeCheck) {
  return gather(collective.ranks, only);  // at most 6.3 million operations
}

absl::StatusOr<Schedule> make_bcube(const Spec& spec, const Collective& collective, OnlyRank only, SizeCheck check) {
  const uint32_t ranks = collective.ranks;
  const uint32_t radix = spec.radix == 0 ? default_radix(ranks) : spec.radix;
  if (radix >= 2 && radix <= ranks) {  // else bcube() makes an error or no operation
    const uint64_t rounds = std::bit_width(ranks) / (std::bit_width(radix) - 1);
    GLN_RETURN_IF_ERROR(check(4 * rounds * ranks * radix));
  }
  return bcube(ranks, radix, only);
}

absl::StatusOr<Schedule> make_blueconnect(const Spec& spec, const Collective& collective, OnlyRank only,
                                          SizeCheck check) {
  const uint32_t ranks = collective.ranks;
  std::vector<uint32_t> factors = spec.factors;
  if (factors.empty()) factors = prime_factors(ranks);
  if (!spec.factors.empty()) GLN_RETURN_IF_ERROR(check_product(spec, ranks));
  std::erase(factors, 1u);
  uint64_t operations = 0;
  for (const uint32_t factor : factors) {
    operations += uint64_t{4} * ranks * (std::has_single_bit(factor) ? std::bit_width(factor) : factor);
  }
  GLN_RETURN_IF_ERROR(check(operations));
  return blueconnect(factors, only);
}

absl::StatusOr<Schedule> make_racks(const Spec& spec, const Collective& collective, OnlyRank only, SizeCheck check) {
  const uint32_t ranks = collective.ranks;
  GLN_ASSIGN_OR_RETURN(Groups groups, groups_of(spec, ranks));
  if (groups.empty()) groups = default_groups_of(ranks);
  GLN_RETURN_IF_ERROR(check(4 * (ranks + square(groups.size()))));
  return racks(ranks, groups, only);
}

absl::StatusOr<Schedule> make_two_level(const Spec& spec, const Collective& collective, OnlyRank only,
                                        SizeCheck check) {
  const uint32_t ranks = collective.ranks;
  GLN_ASSIGN_OR_RETURN(Groups groups, groups_of(spec, ranks));
  if (groups.empty()) groups = default_groups_of(ranks);
  uint64_t operations = uint64_t{4} * ranks * groups.size();
  for (const std::vector<uint32_t>& group : groups) operations += 4 * square(group.size());
  if (spec.masters.empty()) {
    GLN_RETURN_IF_ERROR(check(operations));
    return two_level(ranks, groups, nullptr, only);
  }
  GLN_RETURN_IF_ERROR(check_masters(spec.masters, ranks, groups));
  const uint64_t chunks = std::accumulate(spec.masters.global.begin(), spec.masters.global.end(), uint64_t{0});
  GLN_RETURN_IF_ERROR(check(3 * operations + 4 * chunks * groups.size()));
  return two_level(ranks, groups, &spec.masters, only);
}

absl::StatusOr<Schedule> make_binomial(const Spec&, const Collective& collective, OnlyRank only, SizeCheck) {
  return binomial(collective, only);  // at most 0.3 million operations
}

absl::StatusOr<Schedule> make_scatter_ring(const Spec&, const Collective& collective, OnlyRank only, SizeCheck check) {
  GLN_RETURN_IF_ERROR(check(2 * square(collective.ranks)));
  return scatter_ring(collective, only);
}

absl::StatusOr<Schedule> make_ring_all_gather(const Spec&, const Collective& collective, OnlyRank only,
                                              SizeCheck check) {
  GLN_RETURN_IF_ERROR(check(2 * square(collective.ranks)));
  return ring_all_gather(collective.ranks, only);
}

template <ScatterKind kind>
absl::StatusOr<Schedule> make_reduce_scatter(const Spec&, const Collective& collective, OnlyRank only,
                                             SizeCheck check) {
  const uint64_t messages = kind == ScatterKind::kHalving ? 16 : collective.ranks;  // of each rank
  GLN_RETURN_IF_ERROR(check(2 * collective.ranks * messages));
  return reduce_scatter(collective.ranks, kind, only);
}

absl::StatusOr<Schedule> make_direct(const Spec&, const Collective& collective, OnlyRank only, SizeCheck) {
  return direct(collective, only);  // at most 2.1 million operations
}

absl::StatusOr<Schedule> make_direct_all_gather(const Spec&, const Collective& collective, OnlyRank only,
                                                SizeCheck check) {
  GLN_RETURN_IF_ERROR(check(2 * square(collective.ranks)));
  return direct(collective, only);
}

// The algorithms of one collective follow each other.
constexpr Algorithm kAlgorithms[] = {
    {.name = "ring", .make = make_ring},
    {.name = "halving-doubling", .make = make_halving_doubling},
    {.name = "double-tree", .blocks = true, .make = make_double_tree},
    {.name = "bcube", .radix = true, .make = make_bcube},
    {.name = "blueconnect", .factors = true, .make = make_blueconnect},
    {.name = "gather", .make = make_gather},
    {.name = "racks", .factors = true, .groups = true, .make = make_racks},
    {.name = "two-level", .factors = true, .groups = true, .masters = true, .make = make_two_level},
    {.postcondition = Postcondition::kReduce, .name = "binomial", .make = make_binomial},
    {.postcondition = Postcondition::kBroadcast, .name = "binomial", .make = make_binomial},
    {.postcondition = Postcondition::kBroadcast, .name = "scatter-ring", .make = make_scatter_ring},
    {.postcondition = Postcondition::kAllGather, .name = "ring", .make = make_ring_all_gather},
    {.postcondition = Postcondition::kAllGather, .name = "gather", .make = make_gather},
    {.postcondition = Postcondition::kAllGather, .name = "direct", .make = make_direct_all_gather},
    {.postcondition = Postcondition::kReduceScatter, .name = "ring", .make = make_reduce_scatter<ScatterKind::kRing>},
    {.postcondition = Postcondition::kReduceScatter,
     .name = "halving",
     .make = make_reduce_scatter<ScatterKind::kHalving>},
    {.postcondition = Postcondition::kReduceScatter,
     .name = "direct",
     .make = make_reduce_scatter<ScatterKind::kDirect>},
    {.postcondition = Postcondition::kGather, .name = "direct", .make = make_direct},
    {.postcondition = Postcondition::kGather, .name = "binomial", .make = make_binomial},
    {.postcondition = Postcondition::kScatter, .name = "direct", .make = make_direct},
    {.postcondition = Postcondition::kScatter, .name = "binomial", .make = make_binomial},
    {.postcondition = Postcondition::kAllToAll, .name = "direct", .make = make_direct},
};

constexpr auto kNames = [] {
  std::array<absl::string_view, std::size(kAlgorithms)> names;
  for (size_t i = 0; i < names.size(); ++i) names[i] = kAlgorithms[i].name;
  return names;
}();

// Returns the algorithms of a collective.
std::span<const Algorithm> algorithms_of(Postcondition postcondition) {
  const auto* const first = std::ranges::find(kAlgorithms, postcondition, &Algorithm::postcondition);
  const auto count = std::ranges::count(kAlgorithms, postcondition, &Algorithm::postcondition);
  return {first, static_cast<size_t>(count)};
}

absl::StatusOr<const Algorithm*> algorithm_of(const Spec& spec, Postcondition postcondition) {
  const std::span<const Algorithm> all = algorithms_of(postcondition);
  const auto found = std::ranges::find(all, absl::string_view(spec.algorithm), &Algorithm::name);
  if (found != all.end()) return &*found;
  const std::string which = std::ranges::count(kNames, absl::string_view(spec.algorithm)) == 0
                                ? absl::StrCat("the algorithm '", spec.algorithm, "' is unknown")
                                : absl::StrCat(name_of(postcondition), " has no algorithm '", spec.algorithm, "'");
  return absl::InvalidArgumentError(absl::StrCat(which, all.size() == 1 ? "; give " : "; give one of ",
                                                 absl::StrJoin(algorithms(postcondition), ", ")));
}

absl::Status check_collective(const Collective& collective) {
  const absl::string_view name = name_of(collective.postcondition);
  const uint32_t most = collective.postcondition == Postcondition::kAllToAll ? kMaxAllToAllRanks : kMaxRanks;
  if (collective.ranks < 1 || collective.ranks > most) {
    return absl::InvalidArgumentError(
        absl::StrCat("the number of ranks is ", collective.ranks, "; give 1 to ", most,
                     most == kMaxRanks ? "" : absl::StrCat(", the most that ", name, " supports")));
  }
  if (collective.root == 0) return absl::OkStatus();
  if (!has_root(collective.postcondition)) {
    return absl::InvalidArgumentError(absl::StrCat("the root is rank ", collective.root, ", but ", name,
                                                   " has no root; only reduce, broadcast, gather and scatter have"));
  }
  if (collective.root < collective.ranks) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the root is rank ", collective.root, ", but there are ",
                                                 collective.ranks, " ranks; give 0 to ", collective.ranks - 1));
}

// Refuses parameters that the algorithm would ignore.
absl::Status check_parameters(const Spec& spec, const Algorithm& algorithm) {
  const struct {
    absl::string_view name;
    bool given;
    bool Algorithm::*taken;
  } parameters[] = {{"stages", !spec.factors.empty(), &Algorithm::factors},
                    {"radix", spec.radix != 0, &Algorithm::radix},
                    {"blocks", spec.blocks != 0, &Algorithm::blocks},
                    {"groups", !spec.group_sizes.empty(), &Algorithm::groups},
                    {"masters", !spec.masters.empty(), &Algorithm::masters}};
  for (const auto& parameter : parameters) {
    if (!parameter.given || algorithm.*parameter.taken) continue;
    std::vector<absl::string_view> takers;
    for (const Algorithm& other : algorithms_of(algorithm.postcondition)) {
      if (other.*parameter.taken) takers.push_back(other.name);
    }
    const std::string others =
        takers.empty() ? absl::StrCat("nor has another algorithm of ", name_of(algorithm.postcondition))
                       : absl::StrCat("only ", absl::StrJoin(takers, ", "), takers.size() == 1 ? " has" : " have");
    return absl::InvalidArgumentError(absl::StrCat(algorithm.name, " has no ", parameter.name, "; ", others));
  }
  return absl::OkStatus();
}

}  // namespace

std::span<const absl::string_view> algorithms(Postcondition postcondition) {
  const std::span<const Algorithm> all = algorithms_of(postcondition);
  return std::span(kNames).subspan(static_cast<size_t>(all.data() - kAlgorithms), all.size());
}

bool takes_groups(absl::string_view algorithm) {
  return std::ranges::any_of(kAlgorithms,
                             [&](const Algorithm& known) { return known.name == algorithm && known.groups; });
}

absl::StatusOr<Schedule> make_schedule(const Spec& spec, const Collective& collective, OnlyRank only) {
  return make_schedule(spec, collective, only,
                       [&](uint64_t operations) { return check_size(spec, collective.ranks, operations); });
}

absl::StatusOr<Schedule> make_schedule(const Spec& spec, const Collective& collective, OnlyRank only, SizeCheck check) {
  GLN_ASSIGN_OR_RETURN(const Algorithm* const algorithm, algorithm_of(spec, collective.postcondition));
  GLN_RETURN_IF_ERROR(check_collective(collective));
  GLN_RETURN_IF_ERROR(check_parameters(spec, *algorithm));
  return algorithm->make(spec, collective, only, check);
}

absl::StatusOr<Schedule> make_schedule(const Spec& spec, uint32_t ranks) {
  return make_schedule(spec, Collective{.ranks = ranks});
}

}  // namespace gleaner::collective
