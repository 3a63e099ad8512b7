// LocalJobs keeps a file for each running job of `gleaner run` of this user, PID.json, in folders that nobody else can
// read. Several folders, because XDG_RUNTIME_DIR differs between shells of one user. `gleaner run` adds and removes its
// own job. A process that was killed leaves its file, which add() and list() of other processes reap.
//
// A file has no secret: it names the file with the job's token.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "cli/launcher/local_job.h"

namespace gleaner::launcher {

class LocalJobs {
 public:
  // Reads all of `folders` (UserEnvironment::runtime_folders) that this user alone can use.
  explicit LocalJobs(std::vector<std::string> folders) : folders_(std::move(folders)) {}

  // Writes the job's file into the first folder where that is possible, which is made if it is missing, and calls
  // list() to reap others. Errors: Unavailable if there is no such folder.
  absl::Status add(const LocalJob& job) const;
  // Removes the file of this process's job, if there is one.
  void remove(int64_t pid) const;
  // Returns the jobs whose processes run, in the order of their starts. Removes the files of processes that have ended,
  // but not those of another PID namespace, whose processes it can't see. Makes no folder.
  std::vector<LocalJob> list() const;

 private:
  std::vector<std::string> folders_;
};

// Returns the identity of a process. Errors: NotFound if it has ended; otherwise that of the system.
absl::StatusOr<ProcessIdentity> identify(int64_t pid);

}  // namespace gleaner::launcher
