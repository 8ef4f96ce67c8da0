// Where messages go. A sink is a value that is handed around; the library itself never prints.
#pragma once

#include <filesystem>
#include <functional>
#include <string_view>

namespace headrace::base {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

/// Takes one message (no newline at its end). Must be callable from several threads at once.
using LogSink = std::function<void(LogLevel, std::string_view)>;

/// Drops every message: the default wherever a sink can be given.
LogSink silent_log();

/// What `make_log` writes, and where.
struct LogOptions {
  bool console = true;  // stderr, in colour on a terminal
  LogLevel console_level = LogLevel::kInfo;
  std::filesystem::path file =
      {};  // empty: none; else appended to, every level, flushed per message
};

/// A sink that writes to stderr and to a file. Its copies share both; the last one closes them.
/// @throws IoError if the file cannot be opened.
LogSink make_log(const LogOptions& options);

}  // namespace headrace::base
