#include "comm-lib/runtime/config.h"

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/names.h"
#include "common/base/own_network.h"
#include "common/base/secret_file.h"
#include "common/base/status_macros.h"
#include "common/base/units.h"

namespace gleaner::runtime {
namespace {

std::string value_of(const char* option, const char* variable) {
  if (option != nullptr) return option;
  const char* value = std::getenv(variable);
  return value == nullptr ? "" : value;
}

absl::Status wrong(const char* variable, absl::string_view value, absl::string_view expected) {
  return absl::InvalidArgumentError(absl::StrCat(variable, "=", quote(value), ": expected ", expected));
}

// Reads a number from `option`, else from `variable`, else from `fallback`, a variable of another launcher with the
// same meaning; null: there is none.
absl::Status read_number(const char* option, const char* variable, const char* fallback, uint32_t* target) {
  std::string value = value_of(option, variable);
  if (value.empty() && fallback != nullptr) {
    value = value_of(nullptr, fallback);
    variable = fallback;
  }
  if (value.empty()) return absl::OkStatus();
  if (!absl::SimpleAtoi(value, target)) return wrong(variable, value, "a whole number of at least 0");
  return absl::OkStatus();
}

absl::Status read_size(const char* variable, uint64_t* target) {
  const std::string value = value_of(nullptr, variable);
  if (value.empty()) return absl::OkStatus();
  auto bytes = parse_bytes(value);
  if (!bytes.ok()) return wrong(variable, value, "a whole number of bytes, such as 4MiB, 64KiB or 4096");
  *target = *bytes;
  return absl::OkStatus();
}

enum class Least { kZero, kAboveZero };

absl::Status read_seconds(const char* variable, Least least, absl::Duration* target) {
  const std::string text = value_of(nullptr, variable);
  double seconds = 0;
  if (text.empty()) return absl::OkStatus();
  const bool is_number = absl::SimpleAtod(text, &seconds) && std::isfinite(seconds);
  if (!is_number || seconds < 0 || (least == Least::kAboveZero && seconds == 0)) {
    return wrong(variable, text,
                 least == Least::kZero ? "a number of seconds of at least 0" : "a number of seconds above 0");
  }
  *target = absl::Seconds(seconds);
  return absl::OkStatus();
}

absl::Status read_address(const char* option, const char* variable, Address* target) {
  const std::string value = value_of(option, variable);
  if (value.empty()) return absl::OkStatus();
  auto address = Address::parse(value);
  if (!address.ok()) return wrong(variable, value, "HOST:PORT, such as 127.0.0.1:7000 or [::1]:7000");
  *target = *std::move(address);
  return absl::OkStatus();
}

absl::Status read_identity(const gln_options& options, Config& config) {
  const std::string job = value_of(options.job, "GLEANER_JOB");
  if (!job.empty()) config.job = job;
  GLN_RETURN_IF_ERROR(check_name("GLEANER_JOB", config.job));
  if (value_of(options.worker, "GLEANER_WORKER").empty()) {
    return absl::InvalidArgumentError(
        "GLEANER_WORKER is not set: this process does not know which worker it is; start it with `gleaner run`, or set "
        "GLEANER_COORDINATOR, GLEANER_WORKER and GLEANER_TOKEN_FILE");
  }
  GLN_RETURN_IF_ERROR(read_number(options.worker, "GLEANER_WORKER", nullptr, &config.worker));
  GLN_RETURN_IF_ERROR(read_number(options.local_rank, "GLEANER_LOCAL_RANK", "LOCAL_RANK", &config.local_rank));
  GLN_RETURN_IF_ERROR(read_number(options.local_size, "GLEANER_LOCAL_SIZE", "LOCAL_WORLD_SIZE", &config.local_size));
  if (config.local_size == 0 || config.local_rank >= config.local_size) {
    return absl::InvalidArgumentError(absl::StrCat("GLEANER_LOCAL_RANK=", config.local_rank,
                                                   " with GLEANER_LOCAL_SIZE=", config.local_size,
                                                   ": expected a rank below the size"));
  }
  return absl::OkStatus();
}

absl::Status read_addresses(const gln_options& options, Config& config) {
  if (value_of(options.coordinator, "GLEANER_COORDINATOR").empty()) {
    return absl::InvalidArgumentError(
        "GLEANER_COORDINATOR is not set: expected the coordinator's HOST:PORT; start the process with `gleaner run`");
  }
  GLN_RETURN_IF_ERROR(read_address(options.coordinator, "GLEANER_COORDINATOR", &config.coordinator));
  if (config.coordinator.port == 0) {
    return wrong("GLEANER_COORDINATOR", config.coordinator.to_string(), "a port above 0");
  }
  GLN_RETURN_IF_ERROR(read_address(options.address, "GLEANER_ADDRESS", &config.address));
  Address metrics;
  GLN_RETURN_IF_ERROR(read_address(nullptr, "GLEANER_METRICS", &metrics));
  if (!metrics.host.empty()) config.metrics = metrics;
  config.ca_file = value_of(nullptr, "GLEANER_CA_FILE");
  config.token_file = value_of(options.token_file, "GLEANER_TOKEN_FILE");
  if (config.token_file.empty()) {
    return absl::InvalidArgumentError(
        "GLEANER_TOKEN_FILE is not set: expected the path of the file with the job's token");
  }
  GLN_ASSIGN_OR_RETURN(config.token, read_secret_file(config.token_file));
  return absl::OkStatus();
}

absl::Status read_transports(const gln_options& options, transport::Settings& settings) {
  const std::string wanted = value_of(options.transports, "GLEANER_TRANSPORTS");
  auto preferences = transport::parse_preferences(wanted);
  if (!preferences.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("GLEANER_TRANSPORTS=", preferences.status().message()));
  }
  settings.preferences = *std::move(preferences);
  const std::string directory = value_of(nullptr, "GLEANER_SHM_DIR");
  if (!directory.empty()) settings.shm_directory = directory;
  if (settings.shm_directory.front() != '/') return wrong("GLEANER_SHM_DIR", directory, "an absolute path");
  settings.rdma_device = value_of(nullptr, "GLEANER_RDMA_DEVICE");
  settings.rdma_near = value_of(nullptr, "GLEANER_RDMA_NEAR");
  return read_seconds("GLEANER_RDMA_POLL", Least::kZero, &settings.rdma_poll);
}

absl::Status read_tuning(const gln_options& options, Config& config) {
  const std::string bandwidth = value_of(nullptr, "GLEANER_BANDWIDTH");
  if (!bandwidth.empty()) {
    const auto bits_per_second = parse_bits_per_second(bandwidth);
    if (!bits_per_second.ok()) {
      return wrong("GLEANER_BANDWIDTH", bandwidth,
                   "a bandwidth above 0, such as 25Gbit or 100000000 (bits per second)");
    }
    config.bits_per_second = *bits_per_second;
  }
  GLN_RETURN_IF_ERROR(read_size("GLEANER_WINDOW", &config.window_bytes));
  GLN_RETURN_IF_ERROR(read_size("GLEANER_SUMMER_MEMORY", &config.summer_memory_bytes));
  GLN_RETURN_IF_ERROR(read_size("GLEANER_GPU_MEMORY", &config.gpu_memory_bytes));
  config.kernel = value_of(nullptr, "GLEANER_KERNEL");
  GLN_RETURN_IF_ERROR(read_kernels().status());
  if (options.open_timeout_seconds > 0) {
    config.open_timeout = absl::Seconds(options.open_timeout_seconds);
  } else {
    GLN_RETURN_IF_ERROR(read_seconds("GLEANER_OPEN_TIMEOUT", Least::kAboveZero, &config.open_timeout));
  }
  GLN_RETURN_IF_ERROR(read_seconds("GLEANER_PLAN_TIMEOUT", Least::kAboveZero, &config.plan_timeout));
  const std::string level = value_of(nullptr, "GLEANER_LOG_LEVEL");
  if (!level.empty()) {
    const auto parsed = parse_log_level(level);
    if (!parsed.ok()) return wrong("GLEANER_LOG_LEVEL", level, "debug, info, warning, error or off");
    config.log_level = *parsed;
  }
  return absl::OkStatus();
}

}  // namespace

void complete_address(Config& config) {
  const bool listens_everywhere = is_unspecified(config.address.host);
  if (!config.address.host.empty() && !listens_everywhere) return;
  const std::string host = source_host(config.coordinator).value_or("127.0.0.1");
  (listens_everywhere ? config.advertise : config.address.host) = host;
}

absl::StatusOr<kernels::Kernels> read_kernels() {
  const std::string name = value_of(nullptr, "GLEANER_KERNEL");
  auto chosen = kernels::Kernels::choose(name);
  if (chosen.ok()) return chosen;
  return wrong(
      "GLEANER_KERNEL", name,
      absl::StrCat("a kernel that this processor can run: ", absl::StrJoin(kernels::available_variants(), " or ")));
}

absl::StatusOr<Config> read_config(const gln_options& options) {
  Config config;
  GLN_RETURN_IF_ERROR(read_identity(options, config));
  GLN_RETURN_IF_ERROR(read_addresses(options, config));
  GLN_RETURN_IF_ERROR(read_tuning(options, config));
  GLN_RETURN_IF_ERROR(read_transports(options, config.transports));
  return config;
}

}  // namespace gleaner::runtime
