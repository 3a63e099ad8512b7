// LocalJob describes a running job of `gleaner run`, so that other commands of the same user find and join it. Pure.
//
// Its text is a JSON object of version 1, which a job's file holds (local_jobs.h):
//
//   {"version": 1, "pid": 4242, "process_start": 81234, "pid_namespace": "pid:[4026531836]", "job": "default",
//    "coordinator": "127.0.0.1:40001", "token_file": "/proc/4243/fd/5", "workers": 2, "summers": 1,
//    "start": "2026-11-27T13:00:00+00:00", "command": ["python3", "train.py"]}
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace gleaner::launcher {

// Identifies a process among all that ever ran on this machine since it was booted.
struct ProcessIdentity {
  int64_t pid = 0;
  uint64_t start = 0;         // in clock ticks since boot, as in /proc/PID/stat
  std::string pid_namespace;  // of process numbers, as /proc/PID/ns/pid names it
  friend bool operator==(const ProcessIdentity&, const ProcessIdentity&) = default;
};

struct LocalJob {
  ProcessIdentity process;  // of `gleaner run`
  std::string job;          // its name
  std::string coordinator;  // HOST:PORT
  std::string token_file;   // absolute path
  uint32_t workers = 0;
  uint32_t summers = 0;
  absl::Time start;
  std::vector<std::string> command;
};

nlohmann::ordered_json to_json(const LocalJob& job);
// InvalidArgument: the text is not that of a job in this version.
absl::StatusOr<LocalJob> parse_local_job(const std::string& text);

// More columns of a table of jobs.
struct Columns {
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;  // one for each job
};

// Returns a line for each job, below a head. `figures` are columns of numbers.
std::string local_jobs_table(const std::vector<LocalJob>& jobs, const Columns& figures = {});

// Returns the job with this process and this name. 0 and an empty name are those of any job. Errors: NotFound if there
// is none, InvalidArgument if there are several; the message then lists them, and says how to choose one of them by
// --pid or --job.
absl::StatusOr<LocalJob> choose_local_job(const std::vector<LocalJob>& jobs, int64_t pid, const std::string& name);

}  // namespace gleaner::launcher
