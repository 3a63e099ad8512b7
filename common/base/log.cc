#include "common/base/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace gleaner {
namespace {

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kOff:
      return spdlog::level::off;
  }
  return spdlog::level::info;
}

}  // namespace

absl::StatusOr<LogLevel> parse_log_level(absl::string_view name) {
  if (name == "debug") return LogLevel::kDebug;
  if (name == "info") return LogLevel::kInfo;
  if (name == "warning") return LogLevel::kWarning;
  if (name == "error") return LogLevel::kError;
  if (name == "off") return LogLevel::kOff;
  return absl::InvalidArgumentError(
      absl::StrCat("log level '", name, "': expected debug, info, warning, error or off"));
}

Log::Log(const LogOptions& options)
    : component_(options.component),
      logger_(std::make_unique<spdlog::logger>("gleaner", std::make_shared<spdlog::sinks::stderr_sink_mt>())) {
  logger_->set_level(to_spdlog(options.level));
  logger_->set_formatter(
      std::make_unique<spdlog::pattern_formatter>("%Y-%m-%dT%H:%M:%S.%eZ %l %v", spdlog::pattern_time_type::utc));
}

Log::~Log() = default;

void Log::set_component(std::string component) { component_ = std::move(component); }

bool Log::enabled(LogLevel level) const { return logger_->should_log(to_spdlog(level)); }

void Log::emit(LogLevel level, absl::string_view line) {
  logger_->log(to_spdlog(level), "{}: {}", component_, std::string(line));
  logger_->flush();
}

}  // namespace gleaner
