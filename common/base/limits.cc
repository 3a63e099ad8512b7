#include "common/base/limits.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/descriptor.h"

namespace gleaner {
namespace {

// A limit counts as reached if less than this is left of it, since others may have released some since the error.
constexpr uint64_t kFewTasks = 2;
constexpr uint64_t kFewBytes = 32 << 20;  // more than the stack of a thread, usually 8 MiB

std::optional<uint64_t> soft_limit(int resource) {
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource_t>(resource), &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return std::nullopt;
  }
  return limit.rlim_cur;
}

std::optional<uint64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  uint64_t number = 0;
  if (!(file >> word) || !absl::SimpleAtoi(word, &number)) return std::nullopt;  // pids.max may be "max"
  return number;
}

// Returns the bytes of memory that this process has mapped.
uint64_t mapped_bytes(const std::string& root) {
  const std::optional<uint64_t> pages = number_in(root + "/proc/self/statm");
  return pages.value_or(0) * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

// Returns a text about RLIMIT_AS; empty if there is no such limit.
std::string explain_address_space() {
  const std::optional<uint64_t> limit = soft_limit(RLIMIT_AS);
  if (!limit.has_value()) return "";
  return absl::StrCat("this process may map ", *limit >> 20,
                      " MiB of memory (RLIMIT_AS); raise it with `ulimit -v`, which counts KiB");
}

// Returns the folders of this process's cgroup for processes, from the innermost outwards.
std::vector<std::string> cgroups(const std::string& root) {
  std::vector<std::string> folders;
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {  // 0::/a/b (v2), or 5:pids:/a/b (v1)
    const std::vector<std::string> fields = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3 || (!fields[1].empty() && fields[1] != "pids")) continue;
    const std::string top = absl::StrCat(root, "/sys/fs/cgroup", fields[1].empty() ? "" : "/pids");
    for (std::filesystem::path below = fields[2];; below = below.parent_path()) {
      folders.push_back(top + (below == "/" ? "" : below.string()));
      if (!below.has_relative_path()) break;
    }
  }
  return folders;
}

// Returns a text about pids.max; empty if it is not reached. In a container the limit of the outermost visible cgroup
// is that of the container.
std::string explain_cgroup(const std::string& root) {
  for (const std::string& folder : cgroups(root)) {
    const std::optional<uint64_t> most = number_in(folder + "/pids.max"), now = number_in(folder + "/pids.current");
    if (!most.has_value() || !now.has_value() || *now + kFewTasks < *most) continue;
    return absl::StrCat("the cgroup of this process may have ", *most, " processes and threads, and has ", *now, " (",
                        folder,
                        "/pids.max); raise it: `docker run --pids-limit`, podPidsLimit of the kubelet, TasksMax of "
                        "systemd");
  }
  return "";
}

// Returns the number of threads of all processes of this user, as far as /proc shows them.
uint64_t threads_of_user(const std::string& root) {
  uint64_t count = 0;
  std::error_code ended;
  for (const auto& entry : std::filesystem::directory_iterator(root + "/proc", ended)) {
    struct stat owner {};
    const bool is_process = entry.path().filename().string().find_first_not_of("0123456789") == std::string::npos;
    if (!is_process || ::stat(entry.path().c_str(), &owner) != 0 || owner.st_uid != ::getuid()) continue;
    std::ifstream file(entry.path() / "status");
    for (std::string line; std::getline(file, line);) {
      uint64_t threads = 0;
      if (line.rfind("Threads:", 0) == 0 && absl::SimpleAtoi(line.substr(8), &threads)) count += threads;
    }
  }
  return count;
}

std::string explain_tasks(const std::string& root) {
  const bool can_map_stack = mapped_bytes(root) + kFewBytes < soft_limit(RLIMIT_AS).value_or(RLIM_INFINITY);
  if (!can_map_stack) return explain_address_space();
  if (std::string text = explain_cgroup(root); !text.empty()) return text;
  const std::optional<uint64_t> limit = soft_limit(RLIMIT_NPROC);
  if (!limit.has_value()) return "the machine may be out of memory, or at kernel.threads-max (sysctl)";
  return absl::StrCat("this user may have ", *limit, " processes and threads (RLIMIT_NPROC), and has ",
                      threads_of_user(root), "; raise it with `ulimit -u`, or in /etc/security/limits.conf");
}

std::string explain_memory() {
  std::string text = explain_address_space();
  return text.empty() ? "the machine or the cgroup (memory.max) has no memory left" : text;
}

std::string& program_name() {
  static std::string& name = *new std::string;  // read until the process ends
  return name;
}

[[noreturn]] void on_no_memory() {
  std::set_new_handler(nullptr);  // a failure below must not come here again
  static char text[512];
  std::string why;
  try {
    why = explain_memory();
  } catch (const std::bad_alloc&) {
    // The text below goes without the reason.
  }
  const int size = std::snprintf(text, sizeof text, "%s: out of memory: %s\n", program_name().c_str(),
                                 why.empty() ? "raise RLIMIT_AS (`ulimit -v`) or memory.max" : why.c_str());
  [[maybe_unused]] const ssize_t written =
      ::write(STDERR_FILENO, text, std::min(static_cast<size_t>(size), sizeof text - 1));
  ::_exit(1);
}

}  // namespace

std::string explain_limit(int error, const std::string& root) {
  switch (error) {
    case EAGAIN:
      return explain_tasks(root);
    case ENOMEM:
      return explain_memory();
    case EMFILE:
      return absl::StrCat("this process may open ", soft_limit(RLIMIT_NOFILE).value_or(0),
                          " files (RLIMIT_NOFILE); raise it with `ulimit -n`, or in /etc/security/limits.conf");
    case ENFILE:
      return "the machine has no file descriptor left; raise fs.file-max (sysctl)";
    case EADDRNOTAVAIL:
      return "the machine has no free port for this connection; raise net.ipv4.ip_local_port_range (sysctl)";
    case ENOSPC:
      return "the disk, or the tmpfs (such as /dev/shm), is full; free or add space";
    case EDQUOT:
      return "this user's quota of the disk is used up; free space, or raise the quota";
    case EFBIG:
      return "a file may not grow further (RLIMIT_FSIZE); raise it with `ulimit -f`";
    default:
      return "";
  }
}

absl::Status exhausted(absl::string_view what, int error) {
  const std::string why = explain_limit(error);
  const std::string message = absl::StrCat(what, ": ", std::strerror(error));
  if (why.empty()) return absl::UnavailableError(message);
  return absl::ResourceExhaustedError(absl::StrCat(message, ": ", why));
}

absl::Status with_limits(const absl::Status& status) {
  for (const int error : {ENOMEM, EMFILE, ENFILE, EADDRNOTAVAIL}) {
    if (!absl::StrContains(status.message(), std::strerror(error))) continue;
    return {status.code(), absl::StrCat(status.message(), ": ", explain_limit(error))};
  }
  return status;
}

absl::Status check_descriptors(size_t count, absl::string_view user) {
  std::vector<Descriptor> opened;
  while (opened.size() < count) {
    Descriptor file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!file.valid()) {
      return exhausted(
          absl::StrCat(user, " needs ", count, " descriptors, and only ", opened.size(), " more can be opened"), errno);
    }
    opened.push_back(std::move(file));
  }
  return absl::OkStatus();
}

void report_lack_of_memory(absl::string_view program) {
  program_name() = std::string(program);
  std::set_new_handler(on_no_memory);
}

}  // namespace gleaner
