#include "headrace/train/batches.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "headrace/base/error.h"

namespace headrace::train {
namespace {

at::Tensor ids(const std::vector<std::vector<std::int64_t>>& rows) {
  const auto width = static_cast<std::int64_t>(rows[0].size());
  at::Tensor table = at::empty({static_cast<std::int64_t>(rows.size()), width}, at::kLong);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t j = 0; j < rows[i].size(); ++j) {
      table.index_put_(
          {at::tensor(static_cast<std::int64_t>(i)), at::tensor(static_cast<std::int64_t>(j))},
          at::tensor(rows[i][j]));
    }
  }
  return table;
}

/// Pair i has a target of 1 + i % 40 characters.
std::vector<Pair> pairs_of_many_lengths(int count) {
  std::vector<Pair> pairs;
  for (int i = 0; i < count; ++i) {
    const auto length = static_cast<std::size_t>(1 + i % 40);
    pairs.push_back({"de", std::string(length + static_cast<std::size_t>(i % 3), 'q'),
                     std::string(length, 'z')});
  }
  return pairs;
}

TEST(MakeBatch, PadsEveryRowToTheLongestAndShiftsTheTarget) {
  const ByteTokenizer tokenizer({"de", "fr"});
  const std::vector<Pair> pairs = {{"fr", "ab", "xyz"}, {"de", "c", "u"}};
  const std::vector<const Pair*> rows = {&pairs[0], &pairs[1]};
  const Batch batch = make_batch(rows, tokenizer);
  const std::int64_t pad = ByteTokenizer::kPad;
  const std::int64_t begin = ByteTokenizer::kBegin;
  const std::int64_t end = ByteTokenizer::kEnd;
  EXPECT_TRUE(batch.source.equal(ids({{261, 'a', 'b'}, {260, 'c', pad}})));
  EXPECT_TRUE(batch.target_in.equal(ids({{begin, 'x', 'y', 'z'}, {begin, 'u', pad, pad}})));
  EXPECT_TRUE(
      batch.target_out.equal(ids({{'x', 'y', 'z', end}, {'u', end, kIgnoreIndex, kIgnoreIndex}})));
  EXPECT_EQ(batch.target_tokens, 6);
  EXPECT_EQ(batch.target_bytes, 4);
  EXPECT_EQ(batch.rows(), 2);
}

TEST(MakeBatch, OfNothingHasNoRows) {
  const Batch batch = make_batch({}, ByteTokenizer({}));
  EXPECT_EQ(batch.rows(), 0);
  EXPECT_EQ(batch.source.size(0), 0);
  EXPECT_EQ(batch.target_tokens, 0);
}

TEST(Batches, EachEpochHasEveryPairExactlyOnceInAnOrderOfItsOwn) {
  const std::vector<Pair> pairs = pairs_of_many_lengths(1003);
  const ByteTokenizer tokenizer({"de"});
  for (const std::int64_t tokens : {0, 256}) {
    BatchOptions options;
    options.rows = 16;
    options.target_tokens = tokens;
    options.chunk_batches = 7;
    const Batches batches(pairs, tokenizer, options);
    std::set<std::vector<std::vector<std::uint32_t>>> orders;
    for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
      const auto plan = batches.plan(epoch);
      std::map<std::uint32_t, int> times;
      for (const auto& batch : plan) {
        EXPECT_FALSE(batch.empty());
        for (const std::uint32_t index : batch) ++times[index];
      }
      EXPECT_EQ(times.size(), pairs.size());
      EXPECT_TRUE(std::all_of(times.begin(), times.end(), [](auto& t) { return t.second == 1; }));
      orders.insert(plan);
    }
    EXPECT_EQ(orders.size(), 3U);
  }
}

TEST(Batches, OfFixedRowsLeaveOnlyTheLastOneOfAnEpochShort) {
  const std::vector<Pair> pairs = pairs_of_many_lengths(1003);
  const ByteTokenizer tokenizer({"de"});
  BatchOptions options;
  options.rows = 16;
  options.chunk_batches = 5;
  const auto plan = Batches(pairs, tokenizer, options).plan(0);
  EXPECT_EQ(plan.size(), 63U);  // ceil(1003 / 16)
  const auto full =
      std::count_if(plan.begin(), plan.end(), [](const auto& rows) { return rows.size() == 16; });
  EXPECT_EQ(full, 62);
}

TEST(Batches, OfATokenBudgetNeverExceedItUnlessOneRowDoes) {
  std::vector<Pair> pairs = pairs_of_many_lengths(1000);
  pairs.push_back({"de", "q", std::string(300, 'z')});
  const ByteTokenizer tokenizer({"de"});
  BatchOptions options;
  options.rows = 1000;
  options.target_tokens = 256;
  Batches batches(pairs, tokenizer, options);
  std::int64_t tokens = 0;
  const auto size = static_cast<std::int64_t>(batches.plan(0).size());
  for (std::int64_t step = 0; step < size; ++step) {
    const Batch batch = batches.at(step);
    EXPECT_TRUE(batch.target_out.numel() <= 256 || batch.rows() == 1);
    tokens += batch.target_tokens;
  }
  EXPECT_GT(tokens, size * 256 * 3 / 4);  // and come near it
}

TEST(Batches, KeepToTheRowsWhereTheTokenBudgetAllowsMore) {
  const std::vector<Pair> pairs = pairs_of_many_lengths(1000);
  const ByteTokenizer tokenizer({"de"});
  BatchOptions options;
  options.rows = 8;
  options.target_tokens = 100;
  Batches batches(pairs, tokenizer, options);
  const auto plan = batches.plan(0);
  std::size_t full = 0;
  std::size_t cut_short = 0;
  for (std::size_t step = 0; step < plan.size(); ++step) {
    EXPECT_LE(plan[step].size(), 8U);
    EXPECT_LE(batches.at(static_cast<std::int64_t>(step)).target_out.numel(), 100);
    (plan[step].size() == 8 ? full : cut_short) += 1;
  }
  EXPECT_GT(full, 0U);
  EXPECT_GT(cut_short, 0U);
}

TEST(Batches, WasteLittleOnPadding) {
  const std::vector<Pair> pairs = pairs_of_many_lengths(4000);
  const ByteTokenizer tokenizer({"de"});
  BatchOptions options;
  options.rows = 16;
  Batches batches(pairs, tokenizer, options);
  std::int64_t tokens = 0;
  std::int64_t places = 0;
  for (std::int64_t step = 0; step < 250; ++step) {
    const Batch batch = batches.at(step);
    tokens += batch.target_tokens;
    places += batch.target_out.numel();
  }
  EXPECT_GT(static_cast<double>(tokens), 0.95 * static_cast<double>(places));
}

TEST(Batches, AreAFunctionOfSeedAndStepAlone) {
  const std::vector<Pair> pairs = pairs_of_many_lengths(200);
  const ByteTokenizer tokenizer({"de"});
  for (const std::int64_t tokens : {0, 200}) {
    BatchOptions options;
    options.rows = 16;
    options.target_tokens = tokens;
    options.seed = 5;
    Batches forwards(pairs, tokenizer, options);
    Batches jumping(pairs, tokenizer, options);
    std::vector<Batch> walked;
    for (std::int64_t step = 0; step < 60; ++step) walked.push_back(forwards.at(step));
    for (const std::size_t step : {59U, 3U, 40U, 0U, 41U}) {
      const Batch batch = jumping.at(static_cast<std::int64_t>(step));
      EXPECT_TRUE(batch.source.equal(walked[step].source)) << step;
      EXPECT_TRUE(batch.target_out.equal(walked[step].target_out)) << step;
    }
    EXPECT_GT(forwards.epoch_of(59), 0);
    EXPECT_EQ(forwards.epoch_of(0), 0);
    options.seed = 6;
    EXPECT_NE(Batches(pairs, tokenizer, options).plan(0), forwards.plan(0));
  }
}

TEST(Batches, RefuseWhatCannotWork) {
  const std::vector<Pair> pairs = pairs_of_many_lengths(3);
  const ByteTokenizer tokenizer({"de"});
  const auto with = [&](auto set) {
    BatchOptions options;
    set(options);
    Batches batches(pairs, tokenizer, options);
  };
  EXPECT_THROW(with([](auto& o) { o.rows = 0; }), base::ConfigError);
  EXPECT_THROW(with([](auto& o) { o.target_tokens = -1; }), base::ConfigError);
  EXPECT_THROW(with([](auto& o) { o.chunk_batches = 0; }), base::ConfigError);
  EXPECT_THROW(Batches({}, tokenizer, {}), base::ConfigError);
  EXPECT_THROW(Batches(pairs, tokenizer, {}).at(-1), base::ConfigError);
  EXPECT_NO_THROW(with([](auto& o) { o.rows = std::int64_t{1} << 31U; }));
}

}  // namespace
}  // namespace headrace::train
