#include "headrace/base/log.h"

#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/base/error.h"
#include "headrace/base/file.h"

#include "temporary_folder.h"

namespace headrace::base {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(Log, WritesEveryLevelToItsFileAndFormatsNothing) {
  const TemporaryFolder folder;
  const LogSink log = make_log({.console = false, .file = folder / "log.txt"});
  log(LogLevel::kDebug, "one {} %s");
  log(LogLevel::kError, "two");
  EXPECT_THAT(read_file(folder / "log.txt"),
              AllOf(HasSubstr("debug: one {} %s\n"), HasSubstr("error: two\n")));
}

TEST(Log, ShowsOnTheConsoleOnlyFromItsLevelUp) {
  testing::internal::CaptureStderr();
  const LogSink log = make_log({.console_level = LogLevel::kWarning});
  log(LogLevel::kInfo, "quiet");
  log(LogLevel::kWarning, "loud");
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("loud\n"), Not(HasSubstr("quiet"))));
}

TEST(Log, KeepsLinesWholeWhenManyThreadsWrite) {
  const TemporaryFolder folder;
  const LogSink log = make_log({.console = false, .file = folder / "log.txt"});
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([log] {
      for (int line = 0; line < 50; ++line) {
        log(LogLevel::kInfo, "a whole line");
      }
    });
  }
  threads.clear();
  const std::string text = read_file(folder / "log.txt");
  std::size_t whole = 0;
  for (std::size_t at = text.find(": a whole line\n"); at != std::string::npos;
       at = text.find(": a whole line\n", at + 1)) {
    ++whole;
  }
  EXPECT_EQ(whole, 200U);
}

TEST(Log, RefusesAFileThatItCannotOpen) {
  const TemporaryFolder folder;
  EXPECT_THROW(make_log({.console = false, .file = folder.path()}), IoError);
}

TEST(Log, SilentSinkTakesEverything) {
  silent_log()(LogLevel::kError, "nobody hears");
}

}  // namespace
}  // namespace headrace::base
