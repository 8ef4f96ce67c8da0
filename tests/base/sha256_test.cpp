#include "headrace/base/sha256.h"

#include <string>

#include <gtest/gtest.h>

#include "headrace/base/error.h"
#include "headrace/base/file.h"

#include "temporary_folder.h"

namespace headrace::base {
namespace {

// FIPS 180-4's own examples.
constexpr const char* kOfNothing =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
constexpr const char* kOfAbc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

TEST(Sha256, MeetsTheStandardsExamples) {
  EXPECT_EQ(sha256_hex(""), kOfNothing);
  EXPECT_EQ(sha256_hex("abc"), kOfAbc);
}

TEST(Sha256, DoesNotDependOnThePieces) {
  Sha256 hash;
  hash.update("a");
  hash.update("");
  hash.update("bc");
  Sha256 moved = std::move(hash);
  EXPECT_EQ(moved.hex_digest(), kOfAbc);
}

TEST(Sha256, HashesFilesLongerThanOnePiece) {
  const TemporaryFolder folder;
  const std::string bytes((2U << 20U) + 3, 'a');
  write_file(folder / "a", bytes);
  EXPECT_EQ(sha256_file_hex(folder / "a"), sha256_hex(bytes));
  EXPECT_THROW(sha256_file_hex(folder / "b"), IoError);
}

}  // namespace
}  // namespace headrace::base
