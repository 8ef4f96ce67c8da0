#include "headrace/base/table.h"

#include <gtest/gtest.h>

namespace headrace::base {
namespace {

TEST(Table, AlignsNamesLeftAndQuantitiesRight) {
  Table table({"stage", "layers", "seconds"});
  table.add({"first", "3", "0.5"}).add({"b", "12", "12.25"}).add({"c"});
  EXPECT_EQ(table.to_text(),
            "stage  layers  seconds\n"
            "-----  ------  -------\n"
            "first       3      0.5\n"
            "b          12    12.25\n"
            "c\n");
  EXPECT_EQ(table.num_rows(), 3U);
}

TEST(Table, CountsCharactersNotBytes) {
  Table table({"name", "x"});
  table.add({"\xC3\xA4\xC3\xB6", "y"});
  EXPECT_EQ(table.to_text(), "name  x\n----  -\n\xC3\xA4\xC3\xB6    y\n");
}

TEST(Table, WithoutRowsIsItsHeader) {
  EXPECT_EQ(Table({"a", "b"}).to_text(), "a  b\n-  -\n");
}

}  // namespace
}  // namespace headrace::base
