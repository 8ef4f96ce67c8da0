#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/app/process.h"

namespace headrace::app {

namespace {

TEST(ScheduleCommand, ListsTheMethods) {
  const Outcome outcome = run({"schedule", "list"});
  EXPECT_EQ(outcome.code, 0);
  for (const char* name : {"\nGPipe ", "\n1F1B ", "\nSequential "}) {
    EXPECT_NE(outcome.out.find(name), std::string::npos) << name;
  }
  const auto document = nlohmann::json::parse(run({"schedule", "list", "--json"}).out);
  EXPECT_EQ(document.at("format_version"), 1);
  EXPECT_EQ(document.at("methods").at(0).at("name"), "GPipe");
}

TEST(ScheduleCommand, DrawsAMethod) {
  const Outcome outcome = run({"schedule", "show", "1f1b", "--workers", "2", "--microbatches=3"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_NE(outcome.out.find("worker 0 | F0 F1    B0 F2 B1    B2\n"
                             "worker 1 |    F0 B0 F1 B1 F2 B2\n"),
            std::string::npos)
      << outcome.out;
}

TEST(ScheduleCommand, TellsAMethodAsData) {
  const Outcome outcome =
      run({"schedule", "show", "1F1B", "--workers", "2", "--microbatches", "3", "--json"});
  const auto document = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(document.at("name"), "1F1B");
  EXPECT_EQ(document.at("csv"), "0F0,0F1,0B0,0F2,0B1,0B2\n1F0,1B0,1F1,1B1,1F2,1B2\n");
  EXPECT_EQ(document.at("live_activations_by_worker"), (std::vector<int>{2, 1}));
  EXPECT_EQ(document.at("gradient_order"), "ascending");
}

}  // namespace

}  // namespace headrace::app
