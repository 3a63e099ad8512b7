#include "cli/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "common/base/limits.h"

namespace gleaner::cli {

absl::StatusOr<MemoryFile> MemoryFile::create(const char* name, absl::string_view contents) {
  const auto failed = [name] { return exhausted(absl::StrCat("can't make the file '", name, "' in memory"), errno); };
  Descriptor file(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.valid()) return failed();
  if (::write(file.get(), contents.data(), contents.size()) != static_cast<ssize_t>(contents.size())) return failed();
  constexpr int kUnchangeable = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;
  if (::fchmod(file.get(), 0400) != 0 || ::fcntl(file.get(), F_ADD_SEALS, kUnchangeable) != 0) return failed();
  return MemoryFile(std::move(file));
}

std::string MemoryFile::path() const { return absl::StrCat("/proc/", ::getpid(), "/fd/", file_.get()); }

}  // namespace gleaner::cli
