#include "headrace/base/file.h"

#include <csignal>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "headrace/base/error.h"

#include "message_of.h"
#include "temporary_folder.h"

namespace headrace::base {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::size_t entries_in(const std::filesystem::path& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

// Writes past `bytes` fail while it lives, as on a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    old_handler_ = std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit limit{bytes, old_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, old_handler_);
  }

 private:
  rlimit old_{};
  void (*old_handler_)(int) = nullptr;
};

TEST(ReadFile, GivesEveryByteBack) {
  const TemporaryFolder folder;
  std::string bytes(3 * 4096 + 1, 'x');
  bytes[5] = '\0';
  write_file(folder / "a", bytes);
  EXPECT_EQ(read_file(folder / "a"), bytes);
  write_file(folder / "empty", "");
  EXPECT_EQ(read_file(folder / "empty"), "");
}

TEST(ReadFile, ReadsFilesWhoseSizeIsNotToldInAdvance) {
  EXPECT_THAT(read_file("/proc/self/status"), HasSubstr("Pid:"));
  EXPECT_THROW(read_file("/proc/self/status", 10), IoError);
}

TEST(ReadFile, TakesAFileOfExactlyTheLimitAndRefusesOneByteMore) {
  const TemporaryFolder folder;
  write_file(folder / "a", "12345");
  EXPECT_EQ(read_file(folder / "a", 5), "12345");
  EXPECT_THAT(message_of<IoError>([&] { read_file(folder / "a", 4); }),
              AllOf(HasSubstr("5 bytes"), HasSubstr("at most 4")));
}

TEST(ReadFile, TellsWhatIsWrongWithThePath) {
  const TemporaryFolder folder;
  EXPECT_THAT(message_of<IoError>([&] { read_file(folder / "missing"); }),
              AllOf(HasSubstr("missing'"), HasSubstr("No such file")));
  EXPECT_THAT(message_of<IoError>([&] { read_file(folder.path()); }), HasSubstr("not of a folder"));
  write_file(folder / "a", "x");
  EXPECT_THAT(message_of<IoError>([&] { read_file(folder / "a" / "b"); }),
              HasSubstr("is a file, not a folder"));
}

TEST(ReadFile, DoesNotWaitForAPipe) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(message_of<IoError>([&] { read_file(folder / "pipe"); }), HasSubstr("pipe"));
}

TEST(ReadFile, TellsThatPermissionIsMissing) {
  if (::geteuid() == 0) {
    GTEST_SKIP() << "root may read everything";
  }
  const TemporaryFolder folder;
  write_file(folder / "a", "x");
  ASSERT_EQ(::chmod((folder / "a").c_str(), 0), 0);
  EXPECT_THAT(message_of<IoError>([&] { read_file(folder / "a"); }), HasSubstr("permissions"));
}

TEST(AtomicFile, ShowsNothingBeforeCommitAndLeavesNothingWithoutIt) {
  const TemporaryFolder folder;
  {
    AtomicFile file(folder / "a");
    file.write("half");
    EXPECT_FALSE(std::filesystem::exists(folder / "a"));
  }
  EXPECT_EQ(entries_in(folder.path()), 0U);
}

TEST(AtomicFile, KeepsTheOldFileUntilCommit) {
  const TemporaryFolder folder;
  write_file(folder / "a", "old");
  AtomicFile file(folder / "a");
  file.write("ne");
  file.write("w");
  EXPECT_EQ(read_file(folder / "a"), "old");
  file.commit();
  EXPECT_EQ(read_file(folder / "a"), "new");
  EXPECT_EQ(entries_in(folder.path()), 1U);
}

TEST(AtomicFile, ManyThreadsMayWriteTheSameName) {
  const TemporaryFolder folder;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&folder, i] {
      for (int round = 0; round < 10; ++round) {
        write_file(folder / "a", std::string(1000, static_cast<char>('0' + i)));
      }
    });
  }
  threads.clear();
  const std::string bytes = read_file(folder / "a");
  EXPECT_EQ(bytes, std::string(1000, bytes.at(0)));
  EXPECT_EQ(entries_in(folder.path()), 1U);
}

TEST(AtomicFile, RefusesAFolderAndAMissingFolder) {
  const TemporaryFolder folder;
  EXPECT_THROW(write_file(folder.path(), "x"), IoError);
  EXPECT_THAT(message_of<IoError>([&] { write_file(folder / "no" / "a", "x"); }),
              HasSubstr("its folder exists"));
}

TEST(AtomicFile, KeepsTheOldFileWhenTheDiskIsFull) {
  const TemporaryFolder folder;
  write_file(folder / "a", "old");
  const FileSizeLimit limit(8192);
  EXPECT_THROW(write_file(folder / "a", std::string(10000, 'x')), IoError);
  EXPECT_EQ(read_file(folder / "a"), "old");
  EXPECT_EQ(entries_in(folder.path()), 1U);
}

TEST(LineFile, AppendsWholeLinesToWhatIsThere) {
  const TemporaryFolder folder;
  {
    LineFile file(folder / "a");
    file.append("1");
    EXPECT_EQ(read_file(folder / "a"), "1\n");
  }
  LineFile(folder / "a").append("2");
  EXPECT_EQ(read_file(folder / "a"), "1\n2\n");
}

TEST(LineFile, TakesHalfALineBackWhenTheDiskIsFull) {
  const TemporaryFolder folder;
  LineFile file(folder / "a");
  file.append("whole");
  const FileSizeLimit limit(10);
  EXPECT_THROW(file.append("does not fit"), IoError);
  EXPECT_EQ(read_file(folder / "a"), "whole\n");
}

TEST(LineFile, NamesAFullDisk) {
  if (!std::filesystem::exists("/dev/full")) {
    GTEST_SKIP() << "no /dev/full here";
  }
  LineFile file("/dev/full");
  EXPECT_THAT(message_of<IoError>([&] { file.append("x"); }), HasSubstr("free some space"));
}

}  // namespace
}  // namespace headrace::base
