// Log writes structured lines to standard error. Code logs an event once, where it makes a decision about the event.
//
// Levels:
// - error: the job or process can't go on; the message says what to do.
// - warning: the job or process goes on, but a person should look at it.
// - info: a few lines per job (joined, plan committed, left).
// - debug: for developers; per event, but never per partition.
//
// Example of a line: 2026-01-31T12:00:00.000Z info summer: plan committed job=digits epoch=2
//
// Thread safe.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace spdlog {
class logger;
}

namespace gleaner {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };

// Parses "debug", "info", "warning", "error" or "off". InvalidArgument for any other name.
absl::StatusOr<LogLevel> parse_log_level(absl::string_view name);

struct LogOptions {
  std::string component;             // first word of every line: "summer", "worker/3"
  LogLevel level = LogLevel::kInfo;  // GLEANER_LOG_LEVEL: debug|info|warning|error|off
};

class Log {
 public:
  explicit Log(const LogOptions& options);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  void set_component(std::string component);  // must be called before other threads log

  // Each of these functions logs a message and key=value pairs: log.info("plan committed", "epoch", 2, "job", id).
  template <typename... Fields>
  void debug(absl::string_view message, const Fields&... fields) {
    write(LogLevel::kDebug, message, fields...);
  }
  template <typename... Fields>
  void info(absl::string_view message, const Fields&... fields) {
    write(LogLevel::kInfo, message, fields...);
  }
  template <typename... Fields>
  void warning(absl::string_view message, const Fields&... fields) {
    write(LogLevel::kWarning, message, fields...);
  }
  template <typename... Fields>
  void error(absl::string_view message, const Fields&... fields) {
    write(LogLevel::kError, message, fields...);
  }

 private:
  template <typename... Fields>
  void write(LogLevel level, absl::string_view message, const Fields&... fields) {
    if (!enabled(level)) return;
    std::string line(message);
    append(line, fields...);
    emit(level, line);
  }
  static void append(std::string&) {}
  template <typename Value, typename... Rest>
  static void append(std::string& line, absl::string_view key, const Value& value, const Rest&... rest) {
    absl::StrAppend(&line, " ", key, "=", value);
    append(line, rest...);
  }
  bool enabled(LogLevel level) const;
  void emit(LogLevel level, absl::string_view line);

  std::string component_;
  std::unique_ptr<spdlog::logger> logger_;
};

}  // namespace gleaner
