#include "headrace/base/file.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "headrace/base/error.h"
#include "headrace/base/text.h"

namespace headrace::base {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPieceBytes = 1U << 20U;

std::string advice(int error) {
  switch (error) {
    case ENOENT:
      return "check the path, and that its folder exists";
    case EACCES:
    case EPERM:
    case EROFS:
      return "check who owns it and its permissions";
    case ENOSPC:
    case EDQUOT:
      return "the disk (or your quota) is full: free some space and run again";
    case EISDIR:
      return "give the path of a file, not of a folder";
    case ENOTDIR:
      return "a part of the path before the last one is a file, not a folder";
    case ELOOP:
    case ENAMETOOLONG:
      return "give another path";
    default:
      return "check the disk and the path";
  }
}

[[noreturn]] void fail(const std::string& deed, const fs::path& path, int error) {
  throw IoError("cannot " + deed + " '" + path.string() +
                "': " + std::generic_category().message(error) + "; " + advice(error));
}

class Descriptor {
 public:
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {}
  ~Descriptor() {
    if (descriptor_ >= 0) {
      ::close(descriptor_);
    }
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

// Returns the number of bytes read, 0 at the end.
std::size_t read_some(int descriptor, char* to, std::size_t most, const fs::path& path) {
  for (;;) {
    const ssize_t got = ::read(descriptor, to, most);
    if (got >= 0) {
      return static_cast<std::size_t>(got);
    }
    if (errno != EINTR) {
      fail("read", path, errno);
    }
  }
}

void write_all(int descriptor, std::string_view bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
    } else if (written == 0 || errno != EINTR) {
      fail("write", path, written == 0 ? ENOSPC : errno);
    }
  }
}

void sync(int descriptor, const fs::path& path) {
  // EINVAL: a file system that cannot sync (some network and memory ones) has nothing to promise.
  if (::fsync(descriptor) != 0 && errno != EINVAL) {
    fail("sync", path, errno);
  }
}

struct OpenFile {
  Descriptor descriptor;
  std::uint64_t bytes;
};

OpenFile open_regular(const fs::path& path) {
  // Not blocking: opening a pipe without a writer would wait for ever.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    fail("read", path, errno);
  }
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) {
    const int error = errno;
    ::close(descriptor);
    fail("read", path, error);
  }
  if (!S_ISREG(status.st_mode)) {
    ::close(descriptor);
    if (S_ISDIR(status.st_mode)) {
      fail("read", path, EISDIR);
    }
    throw IoError("cannot read '" + path.string() +
                  "': it is a pipe, socket or device; give the path of a regular file");
  }
  return {Descriptor(descriptor), static_cast<std::uint64_t>(status.st_size)};
}

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

}  // namespace

std::string read_file(const fs::path& path, std::uint64_t most_bytes) {
  const OpenFile file = open_regular(path);
  const auto refuse = [&](std::uint64_t bytes) {
    throw IoError("'" + path.string() + "' has " + thousands(static_cast<std::int64_t>(bytes)) +
                  " bytes; a file of this kind has at most " +
                  thousands(static_cast<std::int64_t>(most_bytes)) + "; give the right file");
  };
  if (file.bytes > most_bytes) {
    refuse(file.bytes);
  }
  std::string bytes;
  bytes.resize(file.bytes);
  std::size_t used = 0;
  for (;;) {
    if (used == bytes.size()) {
      // At the size told by the system, or past it: files in /proc say 0, others may be growing.
      bytes.resize(used + std::min<std::uint64_t>(4096, most_bytes - used + 1));
    }
    const std::size_t got =
        read_some(file.descriptor.get(), bytes.data() + used, bytes.size() - used, path);
    if (got == 0) {
      break;
    }
    used += got;
    if (used > most_bytes) {
      refuse(used);
    }
  }
  bytes.resize(used);
  return bytes;
}

void read_file_in_pieces(const fs::path& path, const std::function<void(std::string_view)>& take) {
  const OpenFile file = open_regular(path);
  std::string buffer(kPieceBytes, '\0');
  while (const std::size_t got =
             read_some(file.descriptor.get(), buffer.data(), buffer.size(), path)) {
    take(std::string_view(buffer).substr(0, got));
  }
}

AtomicFile::AtomicFile(fs::path path) : path_(std::move(path)) {
  if (fs::is_directory(path_)) {
    fail("write", path_, EISDIR);
  }
  // The process and a counter make the name ours; O_EXCL makes sure.
  static std::atomic<unsigned> counter{0};
  temporary_ = folder_of(path_) / ("." + path_.filename().string() + "." +
                                   std::to_string(::getpid()) + "." + std::to_string(counter++));
  temporary_ += ".tmp";
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor_ < 0) {
    fail("write", path_, errno);
  }
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) {
    ::close(descriptor_);
    ::unlink(temporary_.c_str());
  }
}

void AtomicFile::write(std::string_view bytes) {
  HEADRACE_INVARIANT(descriptor_ >= 0);
  write_all(descriptor_, bytes, path_);
}

void AtomicFile::commit() {
  HEADRACE_INVARIANT(descriptor_ >= 0);
  sync(descriptor_, path_);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    fail("write", path_, errno);
  }
  // A delayed error shows at close; the name is the file's own by now.
  const int descriptor = std::exchange(descriptor_, -1);
  if (::close(descriptor) != 0) {
    fail("write", path_, errno);
  }
  sync_folder(folder_of(path_));
}

void write_file(const fs::path& path, std::string_view bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

LineFile::LineFile(fs::path path) : path_(std::move(path)) {
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor_ < 0) {
    fail("write", path_, errno);
  }
}

LineFile::~LineFile() {
  if (descriptor_ >= 0) {
    ::close(descriptor_);
  }
}

void LineFile::append(std::string_view line) {
  std::string bytes(line);
  bytes += '\n';
  const off_t before = ::lseek(descriptor_, 0, SEEK_END);
  try {
    write_all(descriptor_, bytes, path_);
  } catch (const IoError&) {
    // EINVAL: a pipe or device, which has nothing to take back.
    if (before >= 0 && ::ftruncate(descriptor_, before) != 0 && errno != EINVAL) {
      fail("take back half a line of", path_, errno);
    }
    throw;
  }
}

void sync_folder(const fs::path& folder) {
  const Descriptor descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (descriptor.get() < 0) {
    fail("sync the folder", folder, errno);
  }
  sync(descriptor.get(), folder);
}

}  // namespace headrace::base
