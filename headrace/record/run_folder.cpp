#include "headrace/record/run_folder.h"

#include <array>
#include <cerrno>
#include <ctime>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "headrace/base/error.h"
#include "headrace/base/file.h"
#include "headrace/base/text.h"

namespace headrace::record {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kStepPrefix = "step-";

std::string time_text(std::chrono::system_clock::time_point now) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  std::tm parts{};
  localtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  const std::size_t length = std::strftime(text.data(), text.size(), "%Y%m%d-%H%M%S", &parts);
  return {text.data(), length};
}

[[noreturn]] void cannot_make(const fs::path& path, const std::string& reason) {
  throw base::IoError("cannot make the run folder '" + path.string() + "': " + reason +
                      "; give another one with --run.folder=FOLDER");
}

fs::path make_given(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error || !fs::is_directory(path)) {
    cannot_make(path, error ? error.message() : "there is a file of that name");
  }
  return path;
}

// The first of the names that is free: the folder is ours only if we made it.
fs::path make_fresh(const std::string& name) {
  constexpr int kMostTries = 1000;
  const fs::path parent = make_given("runs");
  for (int i = 1; i <= kMostTries; ++i) {
    const fs::path path = parent / (i == 1 ? name : name + "-" + std::to_string(i));
    std::error_code error;
    if (fs::create_directory(path, error)) {
      return path;
    }
    if (error) {
      cannot_make(path, error.message());
    }
  }
  cannot_make(parent / name, "this name and the next " + std::to_string(kMostTries) + " are taken");
}

std::string holder(int descriptor) {
  std::array<char, 32> text{};
  const ssize_t length = ::pread(descriptor, text.data(), text.size() - 1, 0);
  const std::string_view read(text.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
  const auto pid = base::parse_integer(base::trim(read), 1, INT64_MAX);
  return pid ? "process " + std::to_string(*pid) : "another process";
}

}  // namespace

std::string checkpoint_name(std::int64_t step) {
  const std::string digits = std::to_string(step);
  const std::size_t zeros = digits.size() < 8 ? 8 - digits.size() : 0;
  return std::string(kStepPrefix) + std::string(zeros, '0') + digits;
}

std::optional<std::int64_t> step_of_checkpoint(std::string_view name) {
  if (!name.starts_with(kStepPrefix)) {
    return std::nullopt;
  }
  const auto step = base::parse_integer(name.substr(kStepPrefix.size()), 0, INT64_MAX);
  return step && checkpoint_name(*step) == name ? step : std::nullopt;
}

RunFolder::RunFolder(const Recipe& recipe, std::chrono::system_clock::time_point now)
    : path_(recipe.run.folder.empty() ? make_fresh(recipe.run.name + "-" + time_text(now))
                                      : make_given(recipe.run.folder)),
      checkpoint_folder_(recipe.checkpoint.folder) {
  lock();
  try {
    if (fs::exists(config())) {
      throw base::ConfigError("the run folder '" + path_.string() +
                              "' already holds a run (config.toml is there); give another one "
                              "with --run.folder=FOLDER, or move the old one away");
    }
    base::write_file(config(), to_toml(recipe));
  } catch (...) {
    ::close(lock_);
    throw;
  }
}

void RunFolder::lock() {
  const fs::path file = path_ / "lock";
  lock_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (lock_ < 0) {
    cannot_make(path_, std::generic_category().message(errno) + " (writing 'lock' in it)");
  }
  if (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    const std::string who = holder(lock_);
    ::close(std::exchange(lock_, -1));
    if (error != EWOULDBLOCK) {
      cannot_make(path_, std::generic_category().message(error) + " (locking it)");
    }
    throw base::ConfigError("the run folder '" + path_.string() + "' is in use by " + who +
                            "; wait for it to end, or give another one with --run.folder=FOLDER");
  }
  const std::string pid = std::to_string(::getpid()) + "\n";
  if (::ftruncate(lock_, 0) != 0 ||
      ::pwrite(lock_, pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    const int error = errno;
    ::close(std::exchange(lock_, -1));
    cannot_make(path_, std::generic_category().message(error) + " (writing 'lock' in it)");
  }
}

RunFolder::~RunFolder() {
  if (lock_ >= 0) {
    ::close(lock_);
  }
}

RunFolder::RunFolder(RunFolder&& other) noexcept
    : path_(std::move(other.path_)),
      checkpoint_folder_(std::move(other.checkpoint_folder_)),
      lock_(std::exchange(other.lock_, -1)) {}

RunFolder& RunFolder::operator=(RunFolder&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(checkpoint_folder_, other.checkpoint_folder_);
  std::swap(lock_, other.lock_);
  return *this;
}

fs::path RunFolder::checkpoint(std::int64_t step) const {
  return path_ / checkpoint_folder_ / checkpoint_name(step);
}

}  // namespace headrace::record
