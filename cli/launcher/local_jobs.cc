#include "cli/launcher/local_jobs.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace gleaner::launcher {
namespace {

namespace fs = std::filesystem;

// Returns whether `folder` is this user's and nobody else can read or change it. Another user may have made a folder
// with a known name in /tmp, or a link.
bool is_private(const std::string& folder) {
  struct stat info {};
  return ::lstat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == ::geteuid() &&
         (info.st_mode & (S_IRWXG | S_IRWXO)) == 0;
}

}  // namespace

absl::StatusOr<ProcessIdentity> identify(int64_t pid) {
  const std::string process = absl::StrCat("/proc/", pid);
  GLN_ASSIGN_OR_RETURN(const std::string stat, read_file(process + "/stat", "the state of a process"));
  // The second field is the name of the program in parentheses, and may have any characters. The third is the state,
  // and the 22nd the start.
  const std::vector<std::string> fields = absl::StrSplit(stat.substr(stat.rfind(')') + 1), ' ', absl::SkipEmpty());
  ProcessIdentity identity{.pid = pid};
  std::error_code error;
  identity.pid_namespace = fs::read_symlink(process + "/ns/pid", error).string();
  if (fields.size() < 20 || fields[0] == "Z" || !absl::SimpleAtoi(fields[19], &identity.start) || error) {
    return absl::NotFoundError(absl::StrCat("process ", pid, " has ended"));
  }
  return identity;
}

LocalJobs::LocalJobs(const std::vector<std::string>& folders) {
  for (const std::string& folder : folders) {
    ::mkdir(folder.c_str(), S_IRWXU);
    if (!is_private(folder)) continue;
    folder_ = folder;
    return;
  }
}

std::string LocalJobs::file_of(int64_t pid) const { return absl::StrCat(folder_, "/", pid, ".json"); }

absl::Status LocalJobs::add(const LocalJob& job) const {
  if (folder_.empty()) return absl::UnavailableError("there is no folder that only this user can use");
  list();
  // A reader must not see a part of the file.
  const std::string path = file_of(job.process.pid), temporary = path + ".tmp";
  std::ofstream file(temporary, std::ios::trunc);
  file << to_json(job).dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << "\n";
  file.close();
  std::error_code error;
  if (file) fs::rename(temporary, path, error);
  if (file && !error) return absl::OkStatus();
  fs::remove(temporary, error);
  return absl::UnavailableError(absl::StrCat("can't write '", path, "'"));
}

void LocalJobs::remove(int64_t pid) const {
  std::error_code error;
  if (!folder_.empty()) fs::remove(file_of(pid), error);
}

std::vector<LocalJob> LocalJobs::list() const {
  std::vector<LocalJob> jobs;
  const absl::StatusOr<ProcessIdentity> self = identify(::getpid());
  if (!self.ok() || folder_.empty()) return jobs;
  std::error_code error, unremoved;
  for (fs::directory_iterator file(folder_, error), end; !error && file != end; file.increment(error)) {
    const fs::path path = file->path();
    if (path.extension() != ".json") continue;
    const auto text = read_file(path.string(), "the file of a job");
    if (!text.ok()) continue;
    absl::StatusOr<LocalJob> job = parse_local_job(*text);
    if (!job.ok() || job->process.pid_namespace != self->pid_namespace) continue;
    const auto process = identify(job->process.pid);
    if (process.ok() && *process == job->process) {
      jobs.push_back(*std::move(job));
    } else if (process.ok() || absl::IsNotFound(process.status())) {
      fs::remove(path, unremoved);
    }
  }
  std::ranges::stable_sort(jobs, {}, [](const LocalJob& job) { return job.start; });
  return jobs;
}

}  // namespace gleaner::launcher
