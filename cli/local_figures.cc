#include "cli/local_figures.h"

#include <functional>
#include <future>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/env.h"
#include "common/base/secret_file.h"
#include "common/base/status_macros.h"
#include "common/base/text_table.h"
#include "common/base/units.h"
#include "common/member/observer.h"

namespace gleaner::cli {
namespace {

using nlohmann::json;

constexpr absl::Duration kAnswerWithin = absl::Seconds(3);

absl::StatusOr<std::string> ask(const Env& env, const launcher::LocalJob& job) {
  member::JoinOptions options;
  GLN_ASSIGN_OR_RETURN(options.coordinator, Address::parse(job.coordinator));
  GLN_ASSIGN_OR_RETURN(options.token, read_secret_file(job.token_file));
  options.identity.job = job.job;
  options.timeout = kAnswerWithin;
  GLN_ASSIGN_OR_RETURN(std::string summary, member::Observer::read_summary(env, options));
  if (json::parse(summary, nullptr, false).is_object()) return summary;
  return absl::InvalidArgumentError("the coordinator's summary is no JSON object");
}

// Returns 0 if there is no such number.
double number_of(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

std::string efficiency_of(const json& figures) {
  const auto basis = figures.find("efficiency_basis");
  if (basis == figures.end() || *basis == "nothing_measured") return "-";
  if (*basis == "bandwidth") return absl::StrFormat("%.1f %%", 100 * number_of(figures, "efficiency"));
  if (*basis == "latency") return "latency-bound";
  return *basis == "nothing_moves" ? "nothing moves" : "unknown";
}

std::vector<std::string> figures_of(const json& summary) {
  const json window = summary.value("last_minute", json::object());
  const double rate = number_of(window, "steps_per_second"), goodput = number_of(window, "goodput_bytes_per_second");
  return {absl::StrFormat("%.0f", number_of(summary, "steps")), rate > 0 ? absl::StrFormat("%.3g", rate) : "-",
          goodput > 0 ? absl::StrCat(format_bytes(goodput), "/s") : "-", efficiency_of(window),
          goodput > 0 ? format_seconds(number_of(window, "step_wait_seconds")) : "-"};
}

}  // namespace

std::vector<LocalStatus> ask_local_jobs(std::vector<launcher::LocalJob> jobs) {
  const SystemEnv system({"status", LogLevel::kError});
  std::vector<std::future<absl::StatusOr<std::string>>> answers;
  answers.reserve(jobs.size());
  for (const launcher::LocalJob& job : jobs) {
    answers.push_back(std::async(std::launch::async, ask, std::cref(system.env()), std::cref(job)));
  }
  std::vector<LocalStatus> asked;
  for (size_t i = 0; i < jobs.size(); ++i) {
    absl::StatusOr<std::string> summary = answers[i].get();
    asked.push_back({std::move(jobs[i]), std::move(summary)});
  }
  return asked;
}

std::string local_status_table(const std::vector<LocalStatus>& jobs) {
  launcher::Columns figures{{"STEP", "STEPS/S", "GOODPUT", "EFFICIENCY", "WAIT/STEP"}, {}};
  std::vector<launcher::LocalJob> shown;
  for (const LocalStatus& each : jobs) {
    shown.push_back(each.job);
    figures.rows.emplace_back(figures.head.size(), "-");
    if (!each.summary.ok()) continue;
    const json summary = json::parse(*each.summary, nullptr, false);
    figures.rows.back() = figures_of(summary);
    shown.back().summers = static_cast<uint32_t>(number_of(summary, "summers"));  // some may have come or gone
  }
  return launcher::local_jobs_table(shown, figures);
}

}  // namespace gleaner::cli
