#include "common/kube/token.h"

#include <cerrno>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/secret_file.h"

namespace gleaner::kube {

absl::StatusOr<std::string> TokenSource::get() {
  absl::MutexLock lock(&mutex_);
  if (file_.empty()) return token_;
  struct stat now {};
  if (stat(file_.c_str(), &now) != 0) {
    if (!token_.empty()) return token_;
    return absl::ErrnoToStatus(errno, absl::StrCat("can't read the token file '", file_, "'"));
  }
  // The kubelet replaces the file behind a symbolic link, so a new file also has another inode.
  const bool same = now.st_ino == read_at_.st_ino && now.st_size == read_at_.st_size &&
                    now.st_mtim.tv_sec == read_at_.st_mtim.tv_sec && now.st_mtim.tv_nsec == read_at_.st_mtim.tv_nsec;
  if (same) return token_;
  auto token = read_secret_file(file_);
  if (!token.ok()) return token_.empty() ? token.status() : absl::StatusOr<std::string>(token_);
  token_ = *std::move(token);
  read_at_ = now;
  return token_;
}

}  // namespace gleaner::kube
