#include "headrace/memory/size_class.h"

#include <gtest/gtest.h>

namespace headrace::memory {
namespace {

TEST(SizeClass, StartsAsDrawn) {
  const std::size_t drawn[] = {64, 128, 192, 256, 320, 384, 448, 512, 640, 768, 896, 1024, 1280};
  for (int c = 0; c < 13; ++c) {
    EXPECT_EQ(class_bytes(c), drawn[c]);
  }
  EXPECT_EQ(kMostBlockBytes, std::size_t{1} << 46U);
}

TEST(SizeClass, EveryClassHoldsItsSizeAndTheOneBelowDoesNot) {
  for (int c = 0; c < kNumClasses; ++c) {
    EXPECT_EQ(class_of(class_bytes(c)), c);
    if (c + 1 < kNumClasses) {
      EXPECT_EQ(class_of(class_bytes(c) + 1), c + 1);
      EXPECT_LT(class_bytes(c), class_bytes(c + 1));
    }
    EXPECT_EQ(class_bytes(c) % 64, 0U);
  }
  EXPECT_EQ(class_of(1), 0);
}

TEST(SizeClass, WastesAtMostAFifthBeyondSmallBlocks) {
  for (std::size_t bytes = 257; bytes < 200'000; ++bytes) {
    const std::size_t whole = class_bytes(class_of(bytes));
    ASSERT_GE(whole, bytes);
    ASSERT_LE(whole - bytes, whole / 5 + kUnitBytes) << bytes;
  }
}

}  // namespace
}  // namespace headrace::memory
