// The only file that knows spdlog.
#include "headrace/base/log.h"

#include <memory>
#include <string>
#include <vector>

#include <spdlog/logger.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>

#include "headrace/base/error.h"

namespace headrace::base {

namespace {

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

spdlog::sink_ptr open_file(const std::filesystem::path& path) {
  try {
    return std::make_shared<spdlog::sinks::basic_file_sink_mt>(path.string());
  } catch (const spdlog::spdlog_ex& e) {
    throw IoError("cannot write the log file '" + path.string() + "': " + e.what() +
                  "; give a path in a folder that you may write to");
  }
}

}  // namespace

LogSink silent_log() {
  return [](LogLevel, std::string_view) {};
}

LogSink make_log(const LogOptions& options) {
  std::vector<spdlog::sink_ptr> sinks;
  if (options.console) {
    auto console = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
    console->set_level(spdlog_level(options.console_level));
    console->set_pattern("%^%v%$");
    sinks.push_back(std::move(console));
  }
  if (!options.file.empty()) {
    auto file = open_file(options.file);
    file->set_pattern("%Y-%m-%d %H:%M:%S.%e %l: %v");
    sinks.push_back(std::move(file));
  }
  auto logger = std::make_shared<spdlog::logger>("headrace", sinks.begin(), sinks.end());
  logger->set_level(spdlog::level::debug);
  logger->flush_on(spdlog::level::debug);
  return [logger](LogLevel level, std::string_view message) {
    logger->log(spdlog_level(level), spdlog::string_view_t(message.data(), message.size()));
  };
}

}  // namespace headrace::base
