#include "cli/hiding_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "cli/flag_error.h"
#include "common/base/file.h"
#include "common/base/names.h"
#include "common/base/status_macros.h"
#include "common/base/text_table.h"
#include "common/base/units.h"

namespace gleaner::cli {
namespace {

using strategy::Hiding;

constexpr char kPriceFields[] = "worker, summer, summer_ports, nic, switch_port, cable, uplinks, hours";

absl::StatusOr<plan::Prices> parse_prices(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    return absl::InvalidArgumentError(absl::StrCat("expected a JSON object with some of ", kPriceFields));
  }
  plan::Prices prices;
  double ports = prices.summer_ports;
  for (const auto& [name, value] : json.items()) {
    double* const field = name == "worker"         ? &prices.worker
                          : name == "summer"       ? &prices.summer
                          : name == "summer_ports" ? &ports
                          : name == "nic"          ? &prices.nic
                          : name == "switch_port"  ? &prices.switch_port
                          : name == "cable"        ? &prices.cable
                          : name == "uplinks"      ? &prices.uplinks
                          : name == "hours"        ? &prices.hours
                                                   : nullptr;
    if (field == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("the field ", quote(name), " is unknown; the fields are ", kPriceFields));
    }
    if (!value.is_number()) return absl::InvalidArgumentError(absl::StrCat(name, " is no number"));
    *field = value.get<double>();
  }
  if (!(ports >= 1 && ports <= 1e6)) return absl::InvalidArgumentError("summer_ports is no number from 1 to 1000000");
  prices.summer_ports = static_cast<uint32_t>(ports);
  GLN_RETURN_IF_ERROR(plan::validate(prices));
  return prices;
}

std::vector<std::string> names_if(const std::vector<Hiding>& all, bool (*chosen)(const Hiding&)) {
  std::vector<std::string> names;
  for (const Hiding& way : all) {
    if (chosen(way)) names.push_back(way.name);
  }
  return names;
}

}  // namespace

absl::StatusOr<double> parse_compute_time(const std::string& text) {
  if (text.empty()) return flag_error("--prices", "give --compute-time T, too, for example 16ms");
  absl::Duration time;
  if (!absl::ParseDuration(text, &time) || time <= absl::ZeroDuration() || time == absl::InfiniteDuration()) {
    return flag_error("--compute-time",
                      absl::StrCat(quote(text), " is not a duration above 0; write for example 16ms or 0.5s"));
  }
  return absl::ToDoubleSeconds(time);
}

absl::StatusOr<std::optional<plan::Prices>> read_prices(const std::string& path) {
  if (path.empty()) return std::nullopt;
  const auto text = read_file(path, "the prices");
  if (!text.ok()) return absl::Status(text.status().code(), absl::StrCat("--prices: ", text.status().message()));
  auto prices = parse_prices(*text);
  if (!prices.ok()) return flag_error("--prices", absl::StrCat("'", path, "': ", prices.status().message()));
  return *prices;
}

void add_hiding_flags(flags::Command& command, HidingFlags& flags) {
  command.add_text("--compute-time", flags.compute_time,
                   "Computation of a step, as 16ms: also print which bandwidth hides the communication behind it, for "
                   "parameter servers and each strategy");
  command.add_text("--prices", flags.prices,
                   "JSON file with the prices of machines and of the network (docs/cli.md): also print what a step "
                   "costs, and the throughput per 1000 $");
}

bool wants_hiding(const HidingFlags& flags) { return !flags.compute_time.empty() || !flags.prices.empty(); }

absl::StatusOr<std::vector<Hiding>> hiding_of(const HidingFlags& flags, const plan::Fleet& fleet, double bytes) {
  GLN_ASSIGN_OR_RETURN(const double compute_seconds, parse_compute_time(flags.compute_time));
  GLN_ASSIGN_OR_RETURN(const std::optional<plan::Prices> prices, read_prices(flags.prices));
  return strategy::hide(fleet, bytes, compute_seconds, prices);
}

std::string hiding_json(const std::vector<Hiding>& all) {
  auto list = nlohmann::ordered_json::array();
  for (const Hiding& way : all) {
    nlohmann::ordered_json entry = {{"strategy", way.name},
                                    {"summers", way.summers},
                                    {"worker_bandwidth", way.worker_bits_per_second},
                                    {"server_bandwidth", way.server_bits_per_second},
                                    {"communication_seconds", way.communication_seconds},
                                    {"step_seconds", way.step_seconds},
                                    {"hidden", way.hidden}};
    if (way.total_price.has_value()) {
      entry["price"] = *way.total_price;
      entry["step_price"] = *way.step_price;
      entry["throughput_per_1000"] = *way.throughput_per_1000;
    }
    list.push_back(std::move(entry));
  }
  return list.dump();
}

std::string hiding_table(const std::vector<Hiding>& all) {
  const bool priced = !all.empty() && all.front().total_price.has_value();
  std::vector<std::vector<std::string>> rows = {
      {"STRATEGY", "SUMMERS", "WORKERS NEED", "SERVERS NEED", "COMMUNICATION", "STEP", "HIDDEN"}};
  if (priced) rows[0].insert(rows[0].end(), {"PRICE", "PER STEP", "STEPS/S PER 1000 $"});
  for (const Hiding& way : all) {
    rows.push_back({way.name, absl::StrCat(way.summers), format_bits_per_second(way.worker_bits_per_second),
                    format_bits_per_second(way.server_bits_per_second), format_seconds(way.communication_seconds),
                    format_seconds(way.step_seconds), way.hidden ? "yes" : "no"});
    if (!priced) continue;
    rows.back().insert(rows.back().end(),
                       {absl::StrFormat("%.0f $", *way.total_price), absl::StrFormat("%.3g $", *way.step_price),
                        absl::StrFormat("%.4g", *way.throughput_per_1000)});
  }
  return align(rows, "lr");
}

std::string hiding_text(const std::vector<Hiding>& all) {
  const auto hidden = names_if(all, [](const Hiding& way) { return way.hidden; });
  const auto need = [](const Hiding& way) { return std::max(way.worker_bits_per_second, way.server_bits_per_second); };
  const auto least = std::ranges::min_element(all, {}, need);
  std::string text =
      absl::StrCat("Hidden      behind computation: ", hidden.empty() ? "nothing" : absl::StrJoin(hidden, ", "),
                   "\nLeast       ", "bandwidth that hides communication: ", format_bits_per_second(need(*least)),
                   " each way, by ", least->name, "\n");
  if (!least->total_price.has_value()) return text;
  const auto cheapest = std::ranges::min_element(all, {}, [](const Hiding& way) { return *way.step_price; });
  absl::StrAppend(&text, "Cheapest    step: ", absl::StrFormat("%.3g $", *cheapest->step_price), " by ", cheapest->name,
                  "; 1000 $ buy ", absl::StrFormat("%.4g", *cheapest->throughput_per_1000), " steps/s\n");
  return text;
}

}  // namespace gleaner::cli
