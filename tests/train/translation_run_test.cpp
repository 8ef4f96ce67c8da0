#include "headrace/train/translation_run.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "headrace/base/error.h"

#include "tests/base/temporary_folder.h"
#include "tests/train/small_corpus.h"
#include "tests/train/small_recipe.h"

namespace headrace::train {
namespace {

class TranslationRunTest : public testing::Test {
 protected:
  TranslationRunTest() : recipe_(test::small_recipe(folder_.path())) {
    at::set_num_threads(1);  // a second one costs more than it gives on layers this small
    test::write_small_corpus(folder_ / "data", 6, 200);
  }
  TranslationRun make() const { return {recipe_, {}}; }

  base::TemporaryFolder folder_;
  record::Recipe recipe_;
};

TEST_F(TranslationRunTest, BuildsItsModelForTheCorpus) {
  const TranslationRun run = make();
  EXPECT_EQ(run.counts().files, 6);
  EXPECT_EQ(run.tokenizer().languages().size(), 6U);
  EXPECT_EQ(run.model_options().source_vocabulary, run.tokenizer().source_vocabulary());
  EXPECT_EQ(run.model_options().target_vocabulary, run.tokenizer().target_vocabulary());
  EXPECT_EQ(run.model_options().padding, ByteTokenizer::kPad);
  EXPECT_EQ(static_cast<std::int64_t>(run.layers().size()), record::num_layers(recipe_.model));
}

TEST_F(TranslationRunTest, GivesTheSameBatchesForTheSameRecipe) {
  TranslationRun a = make();
  TranslationRun b = make();
  b.batch(7);  // what was read before does not matter
  for (const std::int64_t step : {0, 3}) {
    EXPECT_TRUE(a.batch(step).source.equal(b.batch(step).source));
    EXPECT_EQ(a.batch(step).rows(), 10);
  }
  recipe_.debug.seed = 1;
  EXPECT_FALSE(make().batch(0).source.equal(a.batch(0).source));
}

TEST_F(TranslationRunTest, MeasuresOnABatchOfAboutTheMeanSize) {
  TranslationRun run = make();
  const auto size = [](const Batch& batch) {
    return batch.source.numel() + batch.target_in.numel();
  };
  const auto batches = static_cast<std::int64_t>((run.data().training.size() + 9) / 10);
  std::vector<double> sizes;
  for (std::int64_t i = 0; i < batches; ++i) {
    sizes.push_back(static_cast<double>(size(run.batch(i))));
  }
  const double mean = std::accumulate(sizes.begin(), sizes.end(), 0.0) / std::ssize(sizes);
  const auto distance = [mean](double a) { return std::abs(a - mean); };
  double nearest = distance(sizes.front());
  for (const double each : sizes) nearest = std::min(nearest, distance(each));
  EXPECT_EQ(distance(static_cast<double>(size(run.typical_batch()))), nearest);
}

TEST_F(TranslationRunTest, TranslatesInTheOrderOfThePairsWhateverTheBatches) {
  const TranslationRun whole = make();
  const auto layers = model::build_layers(whole.layers());
  const std::vector<Pair> pairs(whole.data().training.begin(), whole.data().training.begin() + 7);
  const std::vector<std::string> expected = whole.translate(layers, pairs);
  EXPECT_EQ(expected.size(), 7U);
  recipe_.evaluation.batch_size = 2;
  EXPECT_EQ(make().translate(layers, pairs), expected);
  EXPECT_TRUE(whole.translate(layers, {}).empty());
}

TEST_F(TranslationRunTest, StopsTranslatingWhenAsked) {
  recipe_.evaluation.batch_size = 2;
  const TranslationRun run = make();
  const auto layers = model::build_layers(run.layers());
  int asked = 0;
  const auto translations =
      run.translate(layers, std::span(run.data().training).first(8), [&] { return ++asked > 2; });
  EXPECT_EQ(asked, 3);
  EXPECT_EQ(translations.size(), 8U);
}

TEST_F(TranslationRunTest, ScoresTranslationsBesideCopies) {
  const std::vector<Pair> pairs{{"fr", "allemand", "German"}, {"fr", "Oslo", "Oslo"}};
  const std::vector<std::string> translations{"German", "Bergen"};
  const Score score = TranslationRun::score(pairs, translations);
  EXPECT_EQ(score.pairs, 2U);
  EXPECT_EQ(score.exact, 50);
  EXPECT_EQ(score.copy_exact, 50);
  EXPECT_GT(score.chrf, score.copy_chrf);
}

TEST_F(TranslationRunTest, SamplesAreHeldOutPairsOfDifferentLanguages) {
  const TranslationRun run = make();
  const std::vector<Pair> samples = run.samples(4);
  std::vector<std::string> languages;
  for (const Pair& pair : samples) {
    EXPECT_EQ(part_of(pair), Part::kSeen);
    languages.push_back(pair.language);
  }
  std::sort(languages.begin(), languages.end());
  EXPECT_EQ(std::unique(languages.begin(), languages.end()), languages.end());
  EXPECT_GE(samples.size(), 2U);
  EXPECT_LE(run.samples(1000).size(), 6U) << "one a language";
  EXPECT_TRUE(run.samples(0).empty());
}

TEST_F(TranslationRunTest, RefusesSizesThatDoNotFitTheModel) {
  recipe_.model.heads = 3;
  EXPECT_THROW(make(), base::ConfigError);
}

TEST_F(TranslationRunTest, TellsItsCounts) {
  const TranslationRun run = make();
  const std::string text = to_text(run.counts(), run.data());
  EXPECT_NE(text.find("6 catalogues read (0 damaged)"), std::string::npos) << text;
  EXPECT_NE(text.find("1,200 strings"), std::string::npos) << text;
  EXPECT_NE(text.find("of 6 languages"), std::string::npos) << text;
}

}  // namespace
}  // namespace headrace::train
