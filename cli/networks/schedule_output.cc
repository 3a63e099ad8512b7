#include "cli/networks/schedule_output.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/base/text_table.h"
#include "common/collective/summary.h"

namespace gleaner::cli {
namespace {

using collective::Op;
using collective::OpKind;
using collective::Schedule;
using collective::Take;

constexpr size_t kPieceBytes = 1 << 20;
constexpr size_t kShownSteps = 12;  // lines of the table

void append_op(std::string& text, const Op& op) {
  const bool sends = op.kind == OpKind::kSend;
  absl::StrAppend(&text, "{\"op\": \"", sends ? "send" : "receive", "\", \"peer\": ", op.peer, ", \"step\": ", op.step);
  absl::StrAppend(&text, ", \"slice\": [", op.slice.first, ", ", op.slice.count, "]");
  absl::StrAppend(&text, ", \"reduce\": ", op.take == Take::kReduce ? "true" : "false");
  text += "}";
}

std::string head_of(const Schedule& schedule) {
  std::string text = absl::StrCat("{\n  \"algorithm\": \"", schedule.algorithm, "\",\n  \"ranks\": ", schedule.ranks);
  absl::StrAppend(&text, ",\n  \"postcondition\": \"", name_of(schedule.postcondition), "\"");
  if (has_root(schedule.postcondition)) absl::StrAppend(&text, ",\n  \"root\": ", schedule.root);
  absl::StrAppend(&text, ",\n  \"chunks\": ", schedule.chunks, ",\n  \"steps\": ", schedule.steps);
  if (!schedule.stages.empty()) {
    text += ",\n  \"stages\": [";
    absl::string_view separator = "\n";
    for (const collective::Groups& stage : schedule.stages) {
      const std::string groups = absl::StrJoin(stage, ", ", [](std::string* out, const std::vector<uint32_t>& group) {
        absl::StrAppend(out, "[", absl::StrJoin(group, ", "), "]");
      });
      absl::StrAppend(&text, separator, "    [", groups, "]");
      separator = ",\n";
    }
    text += "\n  ]";
  }
  text += ",\n  \"programs\": [";
  return text;
}

// Returns the share of a block that a number of chunks is: "1.7500".
std::string share(uint64_t chunks, const Schedule& schedule) {
  return absl::StrFormat("%.4f", static_cast<double>(chunks) / schedule.chunks_per_block());
}

std::string range_of(uint64_t least, uint64_t most, const Schedule& schedule) {
  return least == most ? share(most, schedule) : absl::StrCat(share(least, schedule), " to ", share(most, schedule));
}

std::string root_of(const Schedule& schedule) {
  return has_root(schedule.postcondition) ? absl::StrCat(", root ", schedule.root) : "";
}

// Returns "4 groups of 3: [0 1 2] [3 4 5] ...".
std::string describe(const collective::Groups& stage) {
  size_t least = stage[0].size(), most = 0;
  for (const std::vector<uint32_t>& group : stage) {
    least = std::min(least, group.size());
    most = std::max(most, group.size());
  }
  std::string text = absl::StrCat(counted(stage.size(), "group"), " of ", least);
  if (most > least) absl::StrAppend(&text, " to ", most);
  text += ":";
  for (size_t group = 0; group < stage.size() && group < 3; ++group) {
    const size_t shown = std::min<size_t>(stage[group].size(), 8);
    const auto end = stage[group].begin() + static_cast<std::ptrdiff_t>(shown);
    absl::StrAppend(&text, " [", absl::StrJoin(stage[group].begin(), end, " "),
                    shown < stage[group].size() ? " ...]" : "]");
  }
  if (stage.size() > 3) text += " ...";
  return text;
}

std::string line_of(const collective::StepRange& range, const Schedule& schedule) {
  const std::string steps =
      range.first == range.last ? absl::StrCat(range.first) : absl::StrCat(range.first, "-", range.last);
  std::string who = absl::StrJoin(range.who, ", ", [](std::string* out, const collective::Transfer& transfer) {
    absl::StrAppend(out, transfer.from, " to ", transfer.to);
  });
  if (range.messages > range.who.size()) who += ", ...";
  return absl::StrFormat("%-11s %8d  %8s  %12s  %s\n", steps, range.messages, share(range.largest, schedule),
                         share(range.most, schedule), who);
}

}  // namespace

absl::Status write_json(const Schedule& schedule,
                        absl::FunctionRef<absl::Status(const std::string& piece, uint32_t written)> write) {
  std::string piece = head_of(schedule);
  for (uint32_t rank = 0; rank < schedule.ranks; ++rank) {
    piece += rank == 0 ? "\n    [" : ",\n    [";
    absl::string_view separator = "\n";
    for (const Op& op : schedule.programs[rank]) {
      absl::StrAppend(&piece, separator, "      ");
      append_op(piece, op);
      separator = ",\n";
      if (piece.size() < kPieceBytes) continue;
      GLN_RETURN_IF_ERROR(write(piece, rank));
      piece.clear();
    }
    piece += schedule.programs[rank].empty() ? "]" : "\n    ]";
  }
  piece += "\n  ]\n}\n";
  return write(piece, schedule.ranks);
}

absl::StatusOr<std::string> to_table(const Schedule& schedule) {
  GLN_ASSIGN_OR_RETURN(const collective::Summary summary, collective::summarize(schedule));
  const uint64_t n = schedule.ranks;
  std::string text = absl::StrCat(schedule.algorithm, ": ", counted(n, "rank"), root_of(schedule), ", ",
                                  counted(schedule.chunks, "chunk"), ", ", counted(schedule.steps, "step"), ", ",
                                  counted(summary.messages, "message"), "\n");
  for (size_t stage = 0; stage < schedule.stages.size(); ++stage) {
    absl::StrAppend(&text, "stage ", stage, ": ", describe(schedule.stages[stage]), "\n");
  }
  // In an all-gather a block is the vector of a rank.
  const bool is_vector = schedule.blocks() == 1 || schedule.postcondition == collective::Postcondition::kAllGather;
  absl::StrAppend(&text, "of ", is_vector ? "the vector" : "a block", "'s S bytes, each rank sends ",
                  range_of(summary.least_sent, summary.most_sent, schedule), " and receives ",
                  range_of(summary.least_received, summary.most_received, schedule));
  if (schedule.postcondition == collective::Postcondition::kAllReduce) {
    absl::StrAppendFormat(&text, "; in any all-reduce, some rank sends %.4f or more",
                          2.0 * static_cast<double>(n - 1) / static_cast<double>(n));
  }
  text += "\n";
  absl::StrAppend(&text, "seconds on one switch with latency a and links of B bytes/s: ", schedule.steps, " a + ",
                  share(summary.star_chunks, schedule), " S/B\n");
  if (summary.steps.empty()) return text;
  absl::StrAppendFormat(&text, "\n%-11s %8s  %8s  %12s  %s\n", "STEPS", "MESSAGES", "LARGEST", "BUSIEST RANK",
                        "WHO SENDS TO WHOM");
  for (size_t i = 0; i < summary.steps.size() && i < kShownSteps; ++i) text += line_of(summary.steps[i], schedule);
  if (summary.steps.size() > kShownSteps) {
    absl::StrAppend(&text, "...         ", counted(schedule.steps - summary.steps[kShownSteps].first, "more step"),
                    "; -o json has all of them\n");
  }
  return text;
}

}  // namespace gleaner::cli
