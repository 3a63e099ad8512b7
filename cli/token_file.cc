#include "cli/token_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/secret_file.h"
#include "common/base/status_macros.h"

namespace gleaner::cli {
namespace {

absl::Status failed(const std::string& path) {
  return absl::UnavailableError(absl::StrCat("can't make the token file '", path, "': ", std::strerror(errno)));
}

}  // namespace

absl::StatusOr<std::string> make_token(Random& random) {
  std::array<uint8_t, 32> bytes{};
  GLN_RETURN_IF_ERROR(random.fill(bytes));
  return absl::BytesToHexString({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

absl::StatusOr<std::string> read_or_make_token_file(const std::string& path,
                                                    absl::FunctionRef<absl::StatusOr<std::string>()> make) {
  struct stat status {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  const bool is_empty = exists && S_ISREG(status.st_mode) && status.st_size == 0;
  if (exists && !is_empty) return read_secret_file(path);
  GLN_ASSIGN_OR_RETURN(const std::string token, make());
  const std::string temporary = is_empty ? path : absl::StrCat(path, ".", ::getpid(), ".tmp");
  const int file = ::open(temporary.c_str(), O_WRONLY | O_CLOEXEC | (is_empty ? 0 : O_CREAT | O_EXCL), 0600);
  if (file < 0) return failed(path);
  const std::string line = token + "\n";
  const bool written = ::write(file, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  const bool closed = ::close(file) == 0;
  if (is_empty) return written && closed ? absl::StatusOr<std::string>(token) : failed(path);
  // link() fails if another process has made the file meanwhile, whereas rename() would replace it.
  const bool linked = written && closed && (::link(temporary.c_str(), path.c_str()) == 0 || errno == EEXIST);
  const absl::Status made = linked ? absl::OkStatus() : failed(path);
  ::unlink(temporary.c_str());
  GLN_RETURN_IF_ERROR(made);
  return read_secret_file(path);
}

absl::StatusOr<std::string> read_or_make_token_file(Random& random, const std::string& path) {
  return read_or_make_token_file(path, [&random] { return make_token(random); });
}

}  // namespace gleaner::cli
