// gleaner schedule: prints the schedule of a collective, for each rank the messages that it sends and receives.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cli/networks/commands.h"
#include "cli/networks/progress_report.h"
#include "cli/networks/schedule_output.h"
#include "cli/networks/stages_flag.h"
#include "cli/print.h"
#include "cli/self/own_command.h"
#include "common/base/env.h"
#include "common/base/status_macros.h"
#include "common/collective/algorithms.h"
#include "common/collective/double_tree.h"

namespace gleaner::cli {
namespace {

struct ScheduleFlags {
  std::string collective = "all-reduce";
  int64_t root = -1;  // -1: not given
  std::string algorithm;
  int64_t ranks = -1;  // -1: not given
  std::string stages;
  int64_t radix = 0;   // 0: the algorithm's default
  int64_t blocks = 0;  // 0: the algorithm's default
  // As in collective::Spec; empty: the algorithm's default.
  std::string group_sizes, global_chunks, local_chunks;
  std::string output = "table";
};

// Returns the flags that an error of make_schedule() is about: those of parameters, or else of the ranks.
std::string flags_in_question(const ScheduleFlags& flags, collective::Postcondition postcondition) {
  if (std::ranges::count(collective::algorithms(postcondition), absl::string_view(flags.algorithm)) == 0) {
    return absl::StrCat("--algorithm ", flags.algorithm);
  }
  std::vector<std::string> given;
  if (!flags.stages.empty()) given.push_back(absl::StrCat("--stages ", flags.stages));
  if (flags.radix != 0) given.push_back(absl::StrCat("--radix ", flags.radix));
  if (flags.blocks != 0) given.push_back(absl::StrCat("--blocks ", flags.blocks));
  if (!flags.group_sizes.empty()) given.push_back(absl::StrCat("--group-sizes ", flags.group_sizes));
  if (!flags.global_chunks.empty()) given.push_back(absl::StrCat("--global-chunks ", flags.global_chunks));
  if (!flags.local_chunks.empty()) given.push_back(absl::StrCat("--local-chunks ", flags.local_chunks));
  if (flags.root > 0) given.push_back(absl::StrCat("--root ", flags.root));
  if (given.empty()) given.push_back(absl::StrCat("--ranks ", flags.ranks));
  return absl::StrJoin(given, " ");
}

absl::StatusOr<std::vector<uint32_t>> parse_counts(absl::string_view flag, const std::string& text) {
  std::vector<uint32_t> counts;
  if (text.empty()) return counts;
  for (const absl::string_view word : absl::StrSplit(text, ',')) {
    if (!absl::SimpleAtoi(word, &counts.emplace_back())) {
      return absl::InvalidArgumentError(
          absl::StrCat(flag, ": '", word, "' is no number; give whole numbers with commas between them, as 3,2,2"));
    }
  }
  return counts;
}

// Returns the names of all algorithms, each once.
std::vector<std::string> all_algorithms() {
  std::vector<std::string> names;
  for (const collective::Postcondition postcondition : collective::postconditions()) {
    for (const absl::string_view name : collective::algorithms(postcondition)) {
      if (std::ranges::find(names, name) == names.end()) names.emplace_back(name);
    }
  }
  return names;
}

// Returns "reduce: binomial; broadcast: binomial, scatter-ring", for example.
std::string algorithms_by_collective() {
  return absl::StrJoin(collective::postconditions(), "; ", [](std::string* out, collective::Postcondition each) {
    absl::StrAppend(out, name_of(each), ": ", absl::StrJoin(collective::algorithms(each), ", "));
  });
}

absl::StatusOr<collective::Collective> collective_of(const ScheduleFlags& flags) {
  const auto postcondition = collective::postcondition_named(flags.collective);
  if (!postcondition.has_value()) {  // the flag accepts only names
    return absl::InvalidArgumentError(absl::StrCat("--collective ", flags.collective, " is unknown"));
  }
  if (flags.algorithm.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("give --algorithm, one of ", absl::StrJoin(collective::algorithms(*postcondition), ", ")));
  }
  if (flags.ranks == -1) return absl::InvalidArgumentError("give --ranks N, for example --ranks 8");
  if (flags.root != -1 && !collective::has_root(*postcondition)) {
    return absl::InvalidArgumentError(absl::StrCat("--root ", flags.root, ": ", flags.collective,
                                                   " has no root; only reduce, broadcast, gather and scatter have"));
  }
  return collective::Collective{static_cast<uint32_t>(flags.ranks), *postcondition,
                                static_cast<uint32_t>(std::max<int64_t>(flags.root, 0))};
}

absl::StatusOr<collective::Schedule> schedule_of(const ScheduleFlags& flags) {
  GLN_ASSIGN_OR_RETURN(const collective::Collective collective, collective_of(flags));
  collective::Spec spec;
  spec.algorithm = flags.algorithm;
  GLN_ASSIGN_OR_RETURN(spec.factors, parse_stages(flags.stages));
  spec.radix = static_cast<uint32_t>(flags.radix);
  spec.blocks = static_cast<uint32_t>(flags.blocks);
  GLN_ASSIGN_OR_RETURN(spec.group_sizes, parse_counts("--group-sizes", flags.group_sizes));
  GLN_ASSIGN_OR_RETURN(spec.masters.global, parse_counts("--global-chunks", flags.global_chunks));
  GLN_ASSIGN_OR_RETURN(spec.masters.local, parse_counts("--local-chunks", flags.local_chunks));
  absl::StatusOr<collective::Schedule> schedule = collective::make_schedule(spec, collective);
  if (schedule.ok()) return schedule;
  return absl::InvalidArgumentError(
      absl::StrCat(flags_in_question(flags, collective.postcondition), ": ", schedule.status().message()));
}

absl::Status print_json(const collective::Schedule& schedule) {
  const SystemEnv system({"gleaner", LogLevel::kError});
  ProgressReport progress(*system.env().clock, own_command("schedule"));
  return write_json(schedule, [&](const std::string& piece, uint32_t written) {
    progress.update([&] { return absl::StrCat("wrote ", written, " of ", schedule.ranks, " programs"); });
    return print(piece);
  });
}

absl::Status run_schedule(const ScheduleFlags& flags) {
  GLN_ASSIGN_OR_RETURN(const collective::Schedule schedule, schedule_of(flags));
  if (flags.output == "json") return print_json(schedule);
  GLN_ASSIGN_OR_RETURN(const std::string table, to_table(schedule));
  return print(table);
}

}  // namespace

void add_schedule(flags::Command& app, Context& context) {
  auto flags = std::make_shared<ScheduleFlags>();
  flags::Command schedule = app.add_command("schedule", "Print the messages of a collective, rank by rank");
  std::vector<std::string> collectives;
  for (const auto postcondition : collective::postconditions()) collectives.emplace_back(name_of(postcondition));
  schedule.add_text("--collective", flags->collective, "Which rank begins and ends with which part of the vector")
      .one_of(collectives)
      .show_default();
  schedule
      .add_text("--algorithm", flags->algorithm,
                absl::StrCat("How ranks exchange their vectors: ", algorithms_by_collective()))
      .one_of(all_algorithms());
  schedule.add_number("--ranks", flags->ranks, "Ranks that take part, 1 or more")
      .between(int64_t{1}, int64_t{collective::kMaxRanks});
  schedule
      .add_number("--root", flags->root,
                  "reduce, broadcast, gather, scatter: the rank that has the result or the vector [default: 0]")
      .between(int64_t{0}, int64_t{collective::kMaxRanks - 1});
  schedule.add_text(
      "--stages", flags->stages,
      "blueconnect: factors of the number of ranks, inner stage first [default: its prime factors]; racks: "
      "RACKS,HOSTS; two-level: GROUPS,RANKS [default of both: as many groups as the square root of ranks]");
  schedule
      .add_number("--radix", flags->radix,
                  "bcube: ranks in a group [default: 4, or the least of which the number of ranks is a power]")
      .between(int64_t{2}, int64_t{collective::kMaxRanks});
  schedule
      .add_number("--blocks", flags->blocks,
                  absl::StrCat(
                      "double-tree: blocks of each half of the vector [default: ", collective::kDefaultTreeBlocks, "]"))
      .between(int64_t{1}, int64_t{65536});
  schedule.add_text("--group-sizes", flags->group_sizes,
                    "racks, two-level: ranks of each group, in place of --stages, as 3,5 for 8 ranks");
  schedule.add_text("--global-chunks", flags->global_chunks,
                    "two-level: chunks of which each rank is the global master, as 2,1,1,1 [default: 1 for each]");
  schedule.add_text("--local-chunks", flags->local_chunks,
                    "two-level: chunks of which each rank is a local master, with --global-chunks [default: as even "
                    "as possible]");
  schedule
      .add_text("-o,--output", flags->output,
                "json: every operation of every rank; table: bytes, time, and who sends to whom")
      .one_of({"json", "table"})
      .show_default();
  schedule.on_chosen([flags, &context] { context.run = [flags] { return run_schedule(*flags); }; });
}

}  // namespace gleaner::cli
