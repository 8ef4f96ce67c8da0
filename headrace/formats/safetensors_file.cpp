// An open safetensors file: the header is read at once, tensors when they are asked for.

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "headrace/base/error.h"
#include "headrace/base/text.h"
#include "headrace/formats/safetensors.h"
#include "headrace/formats/safetensors_layout.h"

namespace headrace::formats {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& reason) {
  throw base::IoError("cannot read " + path.string() + ": " + reason);
}

// Reads as much of `into` as the file has from `offset` on.
std::size_t read_some(int descriptor, const std::filesystem::path& path, std::uint64_t offset,
                      std::span<std::byte> into) {
  std::size_t done = 0;
  while (done < into.size()) {
    const ssize_t n = ::pread(descriptor, into.data() + done, into.size() - done,
                              static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n < 0) {
      fail(path, std::generic_category().message(errno));
    }
    if (n == 0) {
      break;
    }
    done += static_cast<std::size_t>(n);
  }
  return done;
}

// Closes on every way out until the file object takes over.
class Opened {
 public:
  explicit Opened(const std::filesystem::path& path)
      : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (descriptor_ < 0) {
      fail(path, std::generic_category().message(errno));
    }
  }
  ~Opened() {
    if (descriptor_ >= 0) {
      ::close(descriptor_);
    }
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  int get() const { return descriptor_; }
  int release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_;
};

std::uint64_t regular_file_bytes(int descriptor, const std::filesystem::path& path) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) {
    fail(path, std::generic_category().message(errno));
  }
  if (!S_ISREG(status.st_mode)) {
    fail(path, "it is a folder or a device, not a file");
  }
  return static_cast<std::uint64_t>(status.st_size);
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : path_(path) {
  Opened file(path);
  const std::uint64_t file_bytes = regular_file_bytes(file.get(), path);
  std::string start(std::min(file_bytes, kLengthBytes), '\0');
  start.resize(read_some(file.get(), path, 0, std::as_writable_bytes(std::span(start))));
  std::uint64_t header_bytes = 0;
  for (std::size_t i = 0; i < start.size(); ++i) {
    header_bytes |= static_cast<std::uint64_t>(static_cast<unsigned char>(start[i])) << (8 * i);
  }
  // A length that cannot be is told by parse_safetensors; nothing is allocated for it here.
  if (start.size() == kLengthBytes && header_bytes <= kMostHeaderBytes &&
      header_bytes <= file_bytes - kLengthBytes) {
    start.resize(kLengthBytes + header_bytes);
    const auto rest = std::as_writable_bytes(std::span(start)).subspan(kLengthBytes);
    start.resize(kLengthBytes + read_some(file.get(), path, kLengthBytes, rest));
  }
  description_ = parse_safetensors(start, file_bytes, path.string());
  descriptor_ = file.release();
}

SafetensorsFile::~SafetensorsFile() {
  ::close(descriptor_);
}

void SafetensorsFile::read(const TensorEntry& tensor, std::uint64_t offset,
                           std::span<std::byte> into) const {
  HEADRACE_INVARIANT(offset <= tensor.num_bytes() && into.size() <= tensor.num_bytes() - offset);
  const std::size_t done =
      read_some(descriptor_, path_, description_.data_begin + tensor.begin + offset, into);
  if (done < into.size()) {
    fail(path_, "tensor " + base::quote(tensor.name) + " ends after " +
                    std::to_string(offset + done) + " of " + std::to_string(tensor.num_bytes()) +
                    " bytes: the file became shorter since it was opened");
  }
}

}  // namespace headrace::formats
