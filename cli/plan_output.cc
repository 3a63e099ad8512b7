#include "cli/plan_output.h"

#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/copy_flag.h"
#include "cli/print.h"
#include "common/base/status_macros.h"
#include "common/plan/partitioner.h"

namespace gleaner::cli {
namespace {

// Appends the shortest decimal number that is read back as the same double.
void append_number(std::string& text, double value) {
  char digits[400];  // 1e308 and 1e-323 fit
  const auto end = std::to_chars(std::begin(digits), std::end(digits), value, std::chars_format::fixed).ptr;
  text.append(digits, end);
}

// Appends the machines from `begin` to `end`. `nodes` has the node of each machine; empty: unknown.
void append_machines(std::string& text, const plan::Explanation& explanation, const std::vector<std::string>& nodes,
                     size_t begin, size_t end) {
  for (size_t member = begin; member < end; ++member) {
    const plan::MachineLoad& machine = explanation.machines[member];
    absl::StrAppend(&text, member == begin ? "\n" : ",\n", "    {\"bandwidth\": ");
    append_number(text, machine.bits_per_second);
    absl::StrAppend(&text, ", \"bytes\": ", machine.owned_bytes);
    if (member < nodes.size() && !nodes[member].empty()) {
      absl::StrAppend(&text, ", \"node\": ", nlohmann::json(nodes[member]).dump());
    }
    text += "}";
  }
}

// Writes the JSON without a JSON tree, which would take seconds for a plan with millions of partitions.
// `hiding`: a JSON value; empty: none.
std::string to_json(const plan::Plan& plan, const plan::Explanation& explanation, const PlanContext& context,
                    const std::string& hiding) {
  const std::vector<std::string>& nodes = context.nodes;
  std::string text;
  text.reserve((explanation.machines.size() + plan.partitions.size()) * 128);
  text += "{\n  \"workers\": [";
  append_machines(text, explanation, nodes, 0, explanation.workers);
  text += "\n  ],\n  \"summers\": [";
  append_machines(text, explanation, nodes, explanation.workers, explanation.machines.size());
  text += "\n  ],\n  \"partitions\": [";
  absl::string_view separator = "\n";
  for (uint32_t tensor = 0; tensor < plan.tensors.size(); ++tensor) {
    const std::string head = absl::StrCat("    {\"tensor\": ", nlohmann::json(plan.tensors[tensor].name).dump());
    for (const plan::Partition& partition : plan.partitions_of(tensor)) {
      absl::StrAppend(&text, separator, head, ", \"offset\": ", partition.offset, ", \"bytes\": ", partition.bytes);
      absl::StrAppend(&text, ", \"owner\": \"", explanation.machines[partition.owner].name, "\"}");
      separator = ",\n";
    }
  }
  text += "\n  ],\n  \"seconds\": ";
  append_number(text, explanation.seconds);
  text += ",\n  \"bound_seconds\": ";
  append_number(text, explanation.bound_seconds);
  if (explanation.all_strategies_seconds > 0) {
    text += ",\n  \"all_strategies_bound_seconds\": ";
    append_number(text, explanation.all_strategies_seconds);
  }
  if (!explanation.binding_link.empty()) {
    absl::StrAppend(&text, ",\n  \"binding_link\": ", nlohmann::json(explanation.binding_link).dump());
  }
  if (explanation.copies) absl::StrAppend(&text, ",\n  \"copy\": ", copy_json(*explanation.copies));
  if (!hiding.empty()) absl::StrAppend(&text, ",\n  \"hiding\": ", hiding);
  if (context.advice) absl::StrAppend(&text, ",\n  ", advice_json(*context.advice));
  text += "\n}\n";
  return text;
}

}  // namespace

double total_bytes(const std::vector<plan::Tensor>& tensors) {
  double bytes = 0;
  for (const plan::Tensor& tensor : tensors) bytes += static_cast<double>(tensor.bytes());
  return bytes;
}

absl::StatusOr<plan::Plan> plan_of(const PlanFlags& flags, const plan::Fleet& fleet, std::vector<plan::Tensor> tensors,
                                   uint32_t local_ranks, std::vector<double> shares) {
  plan::PartitionOptions options;
  options.shares = std::move(shares);
  GLN_ASSIGN_OR_RETURN(const auto partition_bytes, parse_partition_bytes(flags.partition_bytes));
  if (partition_bytes) options.partition_bytes = *partition_bytes;
  return plan::make_plan(fleet, std::move(tensors), options, local_ranks);
}

absl::Status print_plan(const PlanFlags& flags, const plan::Plan& plan, plan::Explanation explanation,
                        const PlanContext& context) {
  GLN_ASSIGN_OR_RETURN(const std::optional<double> copy, parse_copy_bandwidth(flags.copy));
  if (copy) plan::explain_copies(plan, *copy, explanation);
  std::vector<strategy::Hiding> hiding;
  if (wants_hiding(flags.hiding) && !context.advice) {
    GLN_ASSIGN_OR_RETURN(hiding, hiding_of(flags.hiding, plan::fleet_of(plan), total_bytes(plan.tensors)));
  }
  if (flags.output == "json") {
    return print(to_json(plan, explanation, context, hiding.empty() ? "" : hiding_json(hiding)));
  }
  std::string text = flags.output == "table" ? plan::to_table(explanation) : plan::to_text(explanation);
  if (!hiding.empty()) absl::StrAppend(&text, "\n", hiding_table(hiding));
  if (!hiding.empty() && flags.output == "explain") absl::StrAppend(&text, "\n", hiding_text(hiding));
  if (context.advice) absl::StrAppend(&text, "\n", advice_text(*context.advice));
  return print(absl::StrCat(context.head, text));
}

}  // namespace gleaner::cli
