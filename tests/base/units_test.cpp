#include "headrace/base/units.h"

#include <cmath>

#include <gtest/gtest.h>

namespace headrace::base {
namespace {

TEST(BytesText, PicksTheUnit) {
  EXPECT_EQ(bytes_text(0), "0B");
  EXPECT_EQ(bytes_text(1023), "1023B");
  EXPECT_EQ(bytes_text(1536), "1.50KiB");
  EXPECT_EQ(bytes_text(20LL << 20), "20.00MiB");
  EXPECT_EQ(bytes_text(332859965), "0.31GiB");
  EXPECT_EQ(bytes_text(3LL << 40), "3.00TiB");
  EXPECT_EQ(bytes_text(-1536), "-1.50KiB");
}

TEST(DurationText, PicksTheUnits) {
  EXPECT_EQ(duration_text(0.8512), "0.85s");
  EXPECT_EQ(duration_text(9.999), "10s");
  EXPECT_EQ(duration_text(59.4), "59s");
  EXPECT_EQ(duration_text(59.6), "1m00s");
  EXPECT_EQ(duration_text(72), "1m12s");
  EXPECT_EQ(duration_text(7380), "2h03m");
}

TEST(DurationText, DoesNotKnowWhatIsNoDuration) {
  EXPECT_EQ(duration_text(-1), "?");
  EXPECT_EQ(duration_text(NAN), "?");
  EXPECT_EQ(duration_text(1e300), "?");
}

}  // namespace
}  // namespace headrace::base
