#include "cli/launcher/local_job.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/self/own_command.h"
#include "common/base/text_table.h"
#include "common/base/utf8.h"

namespace gleaner::launcher {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr int kVersion = 1;
constexpr size_t kMostOfACommand = 80;  // bytes of a command in a table

// Returns the command on one line of printable text.
std::string command_text(const std::vector<std::string>& command) {
  std::string text = absl::StrJoin(command, " ");
  for (char& byte : text) {
    if (static_cast<unsigned char>(byte) < ' ' || byte == '\x7f') byte = ' ';
  }
  return shortened(text, kMostOfACommand);
}

LocalJob to_job(const OrderedJson& json) {
  LocalJob job;
  job.process = {json.at("pid"), json.at("process_start"), json.at("pid_namespace")};
  job.job = json.at("job");
  job.coordinator = json.at("coordinator");
  job.token_file = json.at("token_file");
  job.workers = json.at("workers");
  job.summers = json.at("summers");
  job.command = json.at("command").get<std::vector<std::string>>();
  const std::string start = json.at("start");
  if (!absl::ParseTime(absl::RFC3339_full, start, &job.start, nullptr)) job.start = absl::InfinitePast();
  return job;
}

}  // namespace

OrderedJson to_json(const LocalJob& job) {
  return {{"version", kVersion},
          {"pid", job.process.pid},
          {"process_start", job.process.start},
          {"pid_namespace", job.process.pid_namespace},
          {"job", job.job},
          {"coordinator", job.coordinator},
          {"token_file", job.token_file},
          {"workers", job.workers},
          {"summers", job.summers},
          {"start", absl::FormatTime(absl::RFC3339_full, job.start, absl::UTCTimeZone())},
          {"command", job.command}};
}

absl::StatusOr<LocalJob> parse_local_job(const std::string& text) {
  try {
    const OrderedJson json = OrderedJson::parse(text);
    if (json.at("version") == kVersion) return to_job(json);
    return absl::InvalidArgumentError(absl::StrCat("expected version ", kVersion, " of a local job's file"));
  } catch (const OrderedJson::exception& error) {
    return absl::InvalidArgumentError(error.what());
  }
}

std::string local_jobs_table(const std::vector<LocalJob>& jobs, const Columns& figures) {
  std::vector<std::vector<std::string>> rows = {{"PID", "JOB", "WORKERS", "SUMMERS"}};
  rows.front().insert(rows.front().end(), figures.head.begin(), figures.head.end());
  rows.front().insert(rows.front().end(), {"STARTED", "COMMAND"});
  for (size_t i = 0; i < jobs.size(); ++i) {
    const LocalJob& job = jobs[i];
    std::vector<std::string>& row = rows.emplace_back();
    row = {absl::StrCat(job.process.pid), job.job, absl::StrCat(job.workers), absl::StrCat(job.summers)};
    if (!figures.head.empty()) row.insert(row.end(), figures.rows[i].begin(), figures.rows[i].end());
    row.push_back(absl::FormatTime("%Y-%m-%d %H:%M:%S", job.start, absl::LocalTimeZone()));
    row.push_back(command_text(job.command));
  }
  return align(rows, absl::StrCat("rlrr", std::string(figures.head.size(), 'r'), "ll"));
}

absl::StatusOr<LocalJob> choose_local_job(const std::vector<LocalJob>& jobs, int64_t pid, const std::string& name) {
  std::vector<LocalJob> found;
  for (const LocalJob& job : jobs) {
    if ((pid == 0 || job.process.pid == pid) && (name.empty() || job.job == name)) found.push_back(job);
  }
  if (found.size() == 1) return found.front();
  if (found.empty() && jobs.empty()) {
    return absl::NotFoundError(absl::StrCat("no job of `", cli::own_command("run"),
                                            "` of this user runs on this machine; for a job elsewhere give "
                                            "--coordinator and --token-file"));
  }
  if (found.empty()) {
    return absl::NotFoundError(absl::StrCat("no such job of this user runs on this machine; these do:\n",
                                            local_jobs_table(jobs), "Choose one of them by --pid or --job"));
  }
  return absl::InvalidArgumentError(absl::StrCat(counted(found.size(), "job"), " of this user run on this machine:\n",
                                                 local_jobs_table(found), "Choose one of them: --pid ",
                                                 found.front().process.pid));
}

}  // namespace gleaner::launcher
