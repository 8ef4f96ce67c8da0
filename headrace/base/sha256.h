// SHA-256 (FIPS 180-4), by OpenSSL.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace headrace::base {

/// Hashes what is handed to it piece by piece. Not for several threads at once.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void update(std::span<const std::byte> bytes);
  void update(std::string_view bytes);

  /// 64 lower-case hexadecimal digits. Ends the hash: call once.
  std::string hex_digest();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

std::string sha256_hex(std::string_view bytes);

/// Of a file's bytes, read in pieces of 1 MiB.
/// @throws IoError if it cannot be read.
std::string sha256_file_hex(const std::filesystem::path& path);

}  // namespace headrace::base
