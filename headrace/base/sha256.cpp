#include "headrace/base/sha256.h"

#include <array>

#include <openssl/evp.h>

#include "headrace/base/error.h"
#include "headrace/base/file.h"

namespace headrace::base {

struct Sha256::Impl {
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context{EVP_MD_CTX_new(),
                                                                  &EVP_MD_CTX_free};
};

Sha256::Sha256() : impl_(std::make_unique<Impl>()) {
  HEADRACE_INVARIANT(impl_->context != nullptr);
  HEADRACE_INVARIANT(EVP_DigestInit_ex(impl_->context.get(), EVP_sha256(), nullptr) == 1);
}

Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(std::span<const std::byte> bytes) {
  HEADRACE_INVARIANT(EVP_DigestUpdate(impl_->context.get(), bytes.data(), bytes.size()) == 1);
}

void Sha256::update(std::string_view bytes) {
  update(std::as_bytes(std::span(bytes.data(), bytes.size())));
}

std::string Sha256::hex_digest() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  HEADRACE_INVARIANT(EVP_DigestFinal_ex(impl_->context.get(), digest.data(), &size) == 1);
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string text;
  for (unsigned int i = 0; i < size; ++i) {
    text += {kHex[digest[i] >> 4U], kHex[digest[i] & 15U]};
  }
  return text;
}

std::string sha256_hex(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.hex_digest();
}

std::string sha256_file_hex(const std::filesystem::path& path) {
  Sha256 hash;
  read_file_in_pieces(path, [&](std::string_view piece) { hash.update(piece); });
  return hash.hex_digest();
}

}  // namespace headrace::base
