#include "cli/launcher/local_jobs.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
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

std::string file_of(const std::string& folder, int64_t pid) { return absl::StrCat(folder, "/", pid, ".json"); }

// Returns how the names of temporary files of processes in a PID namespace end, after the number of the process.
std::string temporary_ending(const std::string& pid_namespace) { return absl::StrCat(".", pid_namespace, ".tmp"); }

absl::Status write(const std::string& folder, const LocalJob& job) {
  const std::string text = to_json(job).dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  const std::string temporary = absl::StrCat(folder, "/", job.process.pid, temporary_ending(job.process.pid_namespace));
  return replace_file(file_of(folder, job.process.pid), text, "the file of the job", {.temporary = temporary});
}

// Returns whether a process that has ended was killed while it wrote this temporary file.
bool is_abandoned(const fs::path& path, const std::string& pid_namespace) {
  const std::string name = path.filename().string();
  absl::string_view number = name;
  int64_t pid = 0;
  return absl::ConsumeSuffix(&number, temporary_ending(pid_namespace)) && absl::SimpleAtoi(number, &pid) &&
         absl::IsNotFound(identify(pid).status());
}

// Appends the jobs of one folder whose processes run, and removes the files of processes that have ended.
void list_folder(const std::string& folder, const std::string& pid_namespace, std::vector<LocalJob>& jobs) {
  std::error_code error, unremoved;
  for (fs::directory_iterator file(folder, error), end; !error && file != end; file.increment(error)) {
    const fs::path path = file->path();
    if (is_abandoned(path, pid_namespace)) fs::remove(path, unremoved);
    if (path.extension() != ".json") continue;
    const auto text = read_file(path.string(), "the file of a job");
    if (!text.ok()) continue;
    absl::StatusOr<LocalJob> job = parse_local_job(*text);
    if (!job.ok() || job->process.pid_namespace != pid_namespace) continue;
    const auto process = identify(job->process.pid);
    if (process.ok() && *process == job->process) {
      jobs.push_back(*std::move(job));
    } else if (process.ok() || absl::IsNotFound(process.status())) {
      fs::remove(path, unremoved);
    }
  }
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
  if (fields.size() < 20 || fields[0] == "Z" || !absl::SimpleAtoi(fields[19], &identity.start)) {
    return absl::NotFoundError(absl::StrCat("process ", pid, " has ended"));
  }
  // NotFound for ENOENT and ESRCH alone. A process that this one may not inspect has not ended.
  if (error) return absl::ErrnoToStatus(error.value(), absl::StrCat("can't read the PID namespace of process ", pid));
  return identity;
}

absl::Status LocalJobs::add(const LocalJob& job) const {
  list();
  absl::Status status = absl::UnavailableError("there is no folder that only this user can use");
  for (const std::string& folder : folders_) {
    ::mkdir(folder.c_str(), S_IRWXU);
    if (!is_private(folder)) continue;
    status = write(folder, job);
    if (status.ok()) break;
  }
  return status;
}

void LocalJobs::remove(int64_t pid) const {
  std::error_code error;
  for (const std::string& folder : folders_) {
    if (is_private(folder)) fs::remove(file_of(folder, pid), error);
  }
}

std::vector<LocalJob> LocalJobs::list() const {
  std::vector<LocalJob> jobs;
  const absl::StatusOr<ProcessIdentity> self = identify(::getpid());
  if (!self.ok()) return jobs;
  for (const std::string& folder : folders_) {
    if (is_private(folder)) list_folder(folder, self->pid_namespace, jobs);
  }
  std::ranges::stable_sort(jobs, {}, [](const LocalJob& job) { return job.start; });
  return jobs;
}

}  // namespace gleaner::launcher
