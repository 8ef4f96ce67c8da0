// Each mistake that a recipe can have: told with its place, the value found and the values allowed.
#include <gtest/gtest.h>

#include "headrace/base/error.h"
#include "headrace/record/recipe.h"

#include "tests/base/message_of.h"

namespace headrace::record {

namespace {

struct Mistake {
  std::string name;
  std::string toml;
  std::string place;                // what the message begins with
  std::vector<std::string> pieces;  // what it says besides
};

void PrintTo(const Mistake& mistake, std::ostream* out) {
  *out << mistake.name;
}

class RecipeMistake : public testing::TestWithParam<Mistake> {};

TEST_P(RecipeMistake, IsToldWithItsPlace) {
  const Mistake& mistake = GetParam();
  const std::string message =
      base::message_of<base::ConfigError>([&] { (void)parse_recipe(mistake.toml, "r.toml"); });
  EXPECT_EQ(message.substr(0, mistake.place.size()), mistake.place) << message;
  for (const std::string& piece : mistake.pieces) {
    EXPECT_NE(message.find(piece), std::string::npos) << piece << "\nin: " << message;
  }
}

// As deep a tree as the limits on lines and nesting admit.
std::string deep_tree() {
  constexpr int kLevels = 120;
  std::string key = "b";
  for (int i = 0; i < 60; ++i) {
    key += ".b";
  }
  std::string toml = "a = [\n";
  for (int i = 0; i < kLevels; ++i) {
    toml += "{" + key + " = [\n";
  }
  for (int i = 0; i < kLevels; ++i) {
    toml += "]}\n";
  }
  return toml + "]\n";
}

const Mistake kMistakes[] = {
    {"MisspeltKey",
     "[training]\nstepz = 3\n",
     "r.toml:2:1: ",
     {"unknown key training.stepz", "did you mean 'training.steps'?"}},
    {"KeyInTheWrongSection",
     "[training]\nlr = 3.0\n",
     "r.toml:2:1: ",
     {"training.lr", "did you mean 'optimizer.lr'?"}},
    {"KeyOutsideOfASection",
     "steps = 3\n",
     "r.toml:1:1: ",
     {"unknown key steps", "'training.steps'"}},
    {"KeyOfALaterVersion", "[training]\nseq_len = 3\n", "r.toml:2:1: ", {"training.seq_len"}},
    {"UnknownSection",
     "\n[optimiser]\nlr = 1.0\n",
     "r.toml:2:2: ",
     {"unknown section [optimiser]", "'optimizer'"}},
    {"EmptyUnknownSection", "[profiling]\n", "r.toml:1:2: ", {"unknown section [profiling]"}},
    {"SectionAsValue", "training = 3\n", "r.toml:1:1: ", {"training is a section"}},
    {"SectionAsList", "[[training]]\nsteps = 3\n", "r.toml:1:3: ", {"training is a section"}},
    {"TableInASection", "[training.steps]\nx = 1\n", "r.toml:1:", {"training.steps", "a table"}},
    {"TextForAnInteger",
     "[training]\n  steps = 'ten'\n",
     "r.toml:2:11: ",
     {"training.steps = 'ten'", "is text, must be an integer"}},
    {"FractionForAnInteger",
     "[training]\nsteps = 10.0\n",
     "r.toml:2:9: ",
     {"must be an integer", "without a point"}},
    {"IntegerForText", "[data]\nroot = 3\n", "r.toml:2:8: ", {"is an integer, must be text"}},
    {"IntegerForTruth", "[debug]\ndeterministic = 1\n", "r.toml:2:17: ", {"must be true or false"}},
    {"DateForANumber",
     "[optimizer]\nlr = 2020-01-01\n",
     "r.toml:2:6: ",
     {"a date or time", "must be a number"}},
    {"ListOfText",
     "[parallelism]\nlayers_per_stage = ['a']\n",
     "r.toml:2:20: ",
     {"a list with text inside", "a list of integers"}},
    {"ZeroInAList",
     "[parallelism]\nlayers_per_stage = [0]\n",
     "r.toml:2:20: ",
     {"each number must be in [1, 100000]"}},
    {"Negative",
     "[training]\nsteps = -5\n",
     "r.toml:2:9: ",
     {"training.steps = -5: must be in [1, 1000000000000], in steps"}},
    {"Zero", "[training]\nmicro_batch_size = 0\n", "r.toml:2:20: ", {"= 0: must be in [1,"}},
    {"ZeroLearningRate", "[optimizer]\nlr = 0.0\n", "r.toml:2:6: ", {"greater than 0"}},
    {"NotANumber", "[optimizer]\nlr = nan\n", "r.toml:2:6: ", {"= nan: must be a finite number"}},
    {"Infinite", "[optimizer]\nlr = -inf\n", "r.toml:2:6: ", {"= -inf: must be a finite number"}},
    {"TooLargeForADouble", "[optimizer]\nlr = 1e400\n", "r.toml:2:6: ", {"1e400", "too large"}},
    {"TooLargeForAnInteger",
     "[training]\nsteps = 99999999999999999999\n",
     "r.toml:2:9: ",
     {"99999999999999999999", "too large"}},
    {"ShareOfOne", "[model]\ndropout = 1.0\n", "r.toml:2:11: ", {"must be in [0, 1)"}},
    {"UnknownSchedule",
     "[parallelism]\npipeline_schedule = '1FB1'\n",
     "r.toml:2:21: ",
     {"must be one of", "GPipe", "did you mean '1F1B'?"}},
    {"UnknownMode",
     "[activation_checkpoint]\nmode = 'sometimes'\n",
     "r.toml:2:8: ",
     {"never, except_last, always"}},
    {"ControlCharacters",
     "[data]\nroot = \"a\\u0000b\"\n",
     "r.toml:2:8: ",
     {"'a\\x00b'", "must be one line"}},
    {"KeyTwice", "[training]\nsteps = 3\nsteps = 4\n", "r.toml:3:1: ", {"it is there twice"}},
    {"SectionTwice",
     "[training]\nsteps = 3\n[training]\nlog = 4\n",
     "r.toml:3:1: ",
     {"it is there twice"}},
    {"Syntax", "[training]\nsteps = \n", "r.toml:2:", {"not TOML"}},
    {"OpenSection", "[training\nsteps = 1\n", "r.toml:1:", {"not TOML"}},
    {"NotUtf8", "[data]\nroot = \"\xFF\"\n", "r.toml:2:", {"utf-8"}},
    {"Utf16", std::string("\xFF\xFE[\0r\0", 6), "r.toml:1:1: ", {"UTF-16"}},
    {"Binary",
     std::string("\x7F"
                 "ELF\n\1\2\0\0",
                 9),
     "r.toml:2:3: ",
     {"not a text file"}},
    {"Empty", "", "r.toml:1:1: ", {"the recipe is empty"}},
    {"OnlyAComment", "# nothing\n", "r.toml:1:1: ", {"the recipe is empty"}},
    {"LongLine",
     "[run]\nname = '" + std::string(5000, 'x') + "'\n",
     "r.toml:2:4097: ",
     {"at most 4096"}},
    {"DeepKeys", "a" + std::string(2000, '.') + "\n", "r.toml:1:1: ", {"more than 64 dots"}},
    {"DeepTree", deep_tree(), "r.toml:1:1: ", {"unknown key a"}},
    {"DeepLists", "a = " + std::string(2000, '[') + "\n", "r.toml:1:", {"not TOML"}},
};

INSTANTIATE_TEST_SUITE_P(Alone, RecipeMistake, testing::ValuesIn(kMistakes),
                         [](const auto& info) { return info.param.name; });

const Mistake kSizes[] = {
    {"WidthAndHeads",
     "[model]\nheads = 4\nwidth = 130\n",
     "r.toml:3:9: ",
     {"model.width = 130 is not divisible by model.heads = 4", "130 = 4 x 32 + 2", "128 and 132"}},
    {"MoreHeadsThanWidth", "[model]\nwidth = 2\n", "r.toml:2:9: ", {"nearest widths are 4"}},
    {"MicrobatchAboveBatch",
     "[training]\nmicro_batch_size = 8\nglobal_batch_size = 4\n",
     "r.toml:2:20: ",
     {"training.micro_batch_size = 8 x 1 microbatch x data 1 = 8",
      "training.global_batch_size = 4"}},
    {"MoreStagesThanLayers",
     "[parallelism]\npipeline_parallel_size = 8\n",
     "r.toml:2:26: ",
     {"parallelism.pipeline_parallel_size = 8", "at least 8 layers", "encoder 2 + decoder 2"}},
    {"CutOfOtherLength",
     "[parallelism]\npipeline_parallel_size = 2\nlayers_per_stage = [6]\n",
     "r.toml:3:20: ",
     {"names 1 stages", "parallelism.pipeline_parallel_size = 2"}},
    {"CutOfOtherSum",
     "[parallelism]\npipeline_parallel_size = 2\nlayers_per_stage = [3, 9]\n",
     "r.toml:3:20: ",
     {"holds 12 layers in all", "encoder 2 + decoder 2"}},
    {"TooManyCells",
     "[training]\nglobal_batch_size = 900_000_000\nmicro_batch_size = 1\n",
     "r.toml:2:21: ",
     {"900000000 microbatches", "x 1 stages", "500000"}},
    {"TextLongerThanTheModel",
     "[model]\nmax_length = 100\n",
     "r.toml:2:14: ",
     {"data.max_source_bytes = 160", "161 tokens", "model.max_length = 100"}},
    {"StopAfterTheEnd",
     "[training]\nsteps = 5\nstop_at = 6\n",
     "r.toml:3:11: ",
     {"training.stop_at = 6 lies after training.steps = 5"}},
    {"EndOfDecayInTheWarmUp",
     "[lr_scheduler]\nwarmup_steps = 10\ntotal_steps = 5\n",
     "r.toml:3:15: ",
     {"lies inside lr_scheduler.warmup_steps = 10"}},
    {"NameThatLeaves", "[run]\nname = '../x'\n", "r.toml:2:8: ", {"cannot name a folder"}},
    {"FolderThatLeaves",
     "[checkpoint]\nfolder = 'a/../../b'\n",
     "r.toml:2:10: ",
     {"leaves the run folder"}},
};

INSTANTIATE_TEST_SUITE_P(Together, RecipeMistake, testing::ValuesIn(kSizes),
                         [](const auto& info) { return info.param.name; });

TEST(RecipeMistakes, AreAllToldAtOnceInTheOrderOfTheirPlaces) {
  Overrides overrides;
  const char* environment[] = {"HEADRACE_TRAINING__STEPZ=1", "HEADRACE_DEBUG__SEED=-1", nullptr};
  overrides.environment = environment_settings(environment);
  overrides.flags = {flag_setting("optimizer.lr", "fast"), flag_setting("modle.width", "3"),
                     flag_setting("training.steps", "")};
  const std::string message = base::message_of<base::ConfigError>([&] {
    (void)parse_recipe(
        "[training]\nsteps = 0\nglobal_batch_size = -1\n[model]\nwidth = 130\nheights = 3\n",
        "r.toml", overrides);
  });
  EXPECT_EQ(message.substr(0, message.find('\n')), "the recipe has 9 mistakes:");
  std::size_t at = 0;
  for (const char* place :
       {"\n  r.toml:2:9: training.steps = 0", "\n  r.toml:3:21: training.global_batch_size",
        "\n  r.toml:6:1: unknown key model.heights",
        "\n  environment HEADRACE_DEBUG__SEED: debug.seed = '-1'",
        "\n  environment HEADRACE_TRAINING__STEPZ: unknown key training.stepz",
        "\n  flag --optimizer.lr: optimizer.lr = 'fast': must be a number",
        "\n  flag --modle.width: unknown key modle.width; did you mean 'model.width'?",
        "\n  flag --training.steps: training.steps = '': must be an integer",
        "\n  r.toml:5:9: model.width = 130"}) {
    const std::size_t found = message.find(place, at);
    ASSERT_NE(found, std::string::npos) << place << "\nin: " << message;
    at = found;
  }
}

TEST(RecipeMistakes, OfSizesNameTheFlagThatGaveThem) {
  Overrides overrides;
  overrides.flags = {flag_setting("parallelism.pipeline_parallel_size", "9")};
  EXPECT_EQ(base::message_of<base::ConfigError>([&] {
              (void)parse_recipe("[run]\n", "r.toml", overrides);
            }).substr(0, 51),
            "flag --parallelism.pipeline_parallel_size: parallel");
}

TEST(RecipeMistakes, BeyondFiftyAreCounted) {
  std::string toml = "[training]\n";
  for (int i = 0; i < 70; ++i) {
    toml += "unknown" + std::to_string(i) + " = 1\n";
  }
  const std::string message =
      base::message_of<base::ConfigError>([&] { (void)parse_recipe(toml, "r.toml"); });
  EXPECT_NE(message.find("the recipe has 70 mistakes"), std::string::npos);
  EXPECT_NE(message.find("and 20 more"), std::string::npos);
  EXPECT_EQ(message.find("unknown50"), std::string::npos);
}

TEST(RecipeMistakes, InFlagsCannotSmuggleInOtherKeys) {
  for (const char* value : {"1\nx = 2", "1 # x", "{a = 1}", "1, 2", "[1", "1]"}) {
    Overrides overrides;
    overrides.flags = {flag_setting("training.steps", value)};
    EXPECT_THROW((void)parse_recipe("[run]\n", "r.toml", overrides), base::ConfigError) << value;
  }
}

}  // namespace

}  // namespace headrace::record
