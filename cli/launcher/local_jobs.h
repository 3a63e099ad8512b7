// LocalJobs keeps a file for each running job of `gleaner run` of this user, PID.json, in a folder that nobody else can
// read. `gleaner run` adds and removes its own job. A process that was killed leaves its file, which add() and list()
// of other processes reap.
//
// A file has no secret: it names the file with the job's token.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cli/launcher/local_job.h"

namespace gleaner::launcher {

class LocalJobs {
 public:
  // Uses the first of `folders` (UserEnvironment::runtime_folders) that this user alone can use, and makes it if it is
  // missing.
  explicit LocalJobs(const std::vector<std::string>& folders);

  // Writes the job's file, and calls list() to reap others. Errors: Unavailable if there is no folder, or the file
  // can't be written.
  absl::Status add(const LocalJob& job) const;
  // Removes the file of this process's job, if there is one.
  void remove(int64_t pid) const;
  // Returns the jobs whose processes run, in the order of their starts. Removes the files of other jobs, but not those
  // of another PID namespace, whose processes it can't see.
  std::vector<LocalJob> list() const;

 private:
  std::string file_of(int64_t pid) const;

  std::string folder_;  // empty: there is none
};

// Returns the identity of a process. Errors: NotFound if it has ended; those of read_file().
absl::StatusOr<ProcessIdentity> identify(int64_t pid);

}  // namespace gleaner::launcher
