// A folder with a small corpus and a small recipe, and the programs that run in it.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "headrace/base/file.h"

#include "tests/app/process.h"
#include "tests/base/temporary_folder.h"
#include "tests/train/small_corpus.h"

namespace headrace::app {

constexpr const char* kSmallRecipe = R"([model]
width = 16
heads = 2
feed_forward = 32
encoder_layers = 1
decoder_layers = 1
dropout = 0.1

[data]
root = "data"

[training]
steps = 3
micro_batch_size = 3
global_batch_size = 10

[evaluation]
pairs = 4
samples = 2

[metrics]
log_freq = 1
)";

class RunTest : public testing::Test {
 protected:
  RunTest() {
    test::write_small_corpus(folder_ / "data");
    base::write_file(folder_ / "r.toml", kSmallRecipe);
  }

  ProcessOptions here() const {
    return {.folder = folder_.path(), .environment = {}, .seconds_allowed = 120};
  }
  static std::vector<std::string> train(std::vector<std::string> flags,
                                        const std::string& recipe = "r.toml") {
    flags.insert(flags.begin(), {"train", recipe});
    return flags;
  }
  std::filesystem::path path(const std::string& name) const { return folder_ / name; }
  std::string text(const std::string& name) const { return base::read_file(folder_ / name); }
  std::vector<std::string> lines(const std::string& name) const {
    std::ifstream file(folder_ / name);
    std::vector<std::string> all;
    for (std::string line; std::getline(file, line);) all.push_back(line);
    return all;
  }

  base::TemporaryFolder folder_;
};

}  // namespace headrace::app
