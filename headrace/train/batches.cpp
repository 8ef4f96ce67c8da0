#include "headrace/train/batches.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <ATen/ATen.h>

#include "headrace/base/error.h"

namespace headrace::train {
namespace {

/// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). Our own, because what std::shuffle and the
/// standard distributions draw differs between standard libraries.
class Random {
 public:
  Random(std::uint64_t seed, std::uint64_t stream)
      : state_(mix(seed ^ mix(stream + 0x9E3779B97F4A7C15ULL))) {}

  std::uint64_t next() { return mix(state_ += 0x9E3779B97F4A7C15ULL); }

  template <typename T>
  void shuffle(std::span<T> items) {
    for (std::size_t left = items.size(); left > 1; --left) {
      std::swap(items[left - 1], items[next() % left]);
    }
  }

 private:
  static std::uint64_t mix(std::uint64_t z) {
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31U);
  }

  std::uint64_t state_;
};

std::int64_t longest(const std::vector<std::vector<std::int64_t>>& rows) {
  std::size_t length = 0;
  for (const auto& row : rows) length = std::max(length, row.size());
  return static_cast<std::int64_t>(length);
}

/// [rows, width], each row from column `start` on, `fill` elsewhere.
at::Tensor padded(const std::vector<std::vector<std::int64_t>>& rows, std::int64_t width,
                  std::int64_t start, std::int64_t fill) {
  at::Tensor table =
      at::full({static_cast<std::int64_t>(rows.size()), width}, fill, at::TensorOptions(at::kLong));
  auto* out = table.mutable_data_ptr<std::int64_t>();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::copy(rows[i].begin(), rows[i].end(), out + static_cast<std::int64_t>(i) * width + start);
  }
  return table;
}

void check(bool ok, const std::string& rule) {
  if (!ok) throw base::ConfigError(rule);
}

constexpr std::uint64_t kLow = 0xFFFFFFFFULL;
constexpr std::int64_t kMostSize = std::int64_t{1} << 31U;

std::uint64_t target_length(std::uint64_t lengths) {
  return lengths >> 32U;
}

}  // namespace

at::Tensor make_source(std::span<const Pair* const> pairs, const ByteTokenizer& tokenizer) {
  std::vector<std::vector<std::int64_t>> rows;
  rows.reserve(pairs.size());
  for (const Pair* pair : pairs) {
    rows.push_back(tokenizer.encode_source(pair->language, pair->source));
  }
  return padded(rows, longest(rows), 0, ByteTokenizer::kPad);
}

Batch make_batch(std::span<const Pair* const> pairs, const ByteTokenizer& tokenizer) {
  std::vector<std::vector<std::int64_t>> targets;
  targets.reserve(pairs.size());
  Batch batch;
  for (const Pair* pair : pairs) {
    targets.push_back(tokenizer.encode_target(pair->target));
    batch.target_bytes += static_cast<std::int64_t>(pair->target.size());
    batch.target_tokens += static_cast<std::int64_t>(targets.back().size()) + 1;
  }
  const std::int64_t width = longest(targets) + 1;
  batch.source = make_source(pairs, tokenizer);
  batch.target_in = padded(targets, width, 1, ByteTokenizer::kPad);
  batch.target_in.select(1, 0).fill_(ByteTokenizer::kBegin);
  for (auto& target : targets) target.push_back(ByteTokenizer::kEnd);
  batch.target_out = padded(targets, width, 0, kIgnoreIndex);
  return batch;
}

Batches::Batches(std::span<const Pair> pairs, const ByteTokenizer& tokenizer, BatchOptions options)
    : pairs_(pairs), tokenizer_(&tokenizer), options_(options) {
  check(!pairs.empty(), "batches need at least one pair, found 0: read a corpus first");
  check(pairs.size() <= kLow, "batches index pairs with 32 bits, found " +
                                  std::to_string(pairs.size()) + " pairs: give fewer");
  check(options.rows >= 1 && options.rows <= kMostSize,
        "a batch has 1 to 2147483648 rows, found rows = " + std::to_string(options.rows));
  check(options.target_tokens >= 0 && options.target_tokens <= kMostSize,
        "target_tokens must be 0 (no limit) or 1 to 2147483648, found " +
            std::to_string(options.target_tokens));
  check(options.chunk_batches >= 1, "a chunk needs at least 1 batch, found chunk_batches = " +
                                        std::to_string(options.chunk_batches));
  lengths_.reserve(pairs.size());
  for (const Pair& pair : pairs) {
    const std::uint64_t target = tokenizer.encode_target(pair.target).size() + 1;
    const std::uint64_t source = tokenizer.encode_source(pair.language, pair.source).size();
    lengths_.push_back((target << 32U) | std::min(source, kLow));
  }
}

void Batches::sort_chunk(std::span<std::uint32_t> chunk, std::uint64_t rows) const {
  const auto target = [this](std::uint32_t i) { return target_length(lengths_[i]); };
  const auto source = [this](std::uint32_t i) { return lengths_[i] & kLow; };
  std::sort(chunk.begin(), chunk.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(target(a), a) < std::pair(target(b), b);
  });
  // As many strips as batches in a strip, so that neither length varies much within a batch; up and
  // down in turn, so that a batch across two strips is no worse.
  const double batches = static_cast<double>(chunk.size()) / static_cast<double>(rows);
  const auto strip = rows * static_cast<std::uint64_t>(std::ceil(std::sqrt(batches)));
  bool ascending = true;
  for (std::uint64_t start = 0; start < chunk.size(); start += strip, ascending = !ascending) {
    const auto part = chunk.subspan(start, std::min<std::uint64_t>(strip, chunk.size() - start));
    std::sort(part.begin(), part.end(), [&](std::uint32_t a, std::uint32_t b) {
      const std::pair one(source(a), a);
      const std::pair two(source(b), b);
      return ascending ? one < two : two < one;
    });
  }
}

std::uint64_t Batches::typical_rows() const {
  const auto rows = static_cast<std::uint64_t>(options_.rows);
  if (options_.target_tokens == 0) return rows;
  std::uint64_t total = 0;
  for (const std::uint64_t lengths : lengths_) total += target_length(lengths);
  const auto budget = static_cast<std::uint64_t>(options_.target_tokens);
  return std::clamp<std::uint64_t>(budget * pairs_.size() / total, 1, rows);
}

std::vector<std::vector<std::uint32_t>> Batches::plan(std::int64_t epoch) const {
  Random random(options_.seed, static_cast<std::uint64_t>(epoch));
  std::vector<std::uint32_t> order(pairs_.size());
  std::iota(order.begin(), order.end(), 0U);
  random.shuffle(std::span(order));

  const std::uint64_t rows = typical_rows();
  const auto budget = static_cast<std::uint64_t>(options_.target_tokens);
  const std::uint64_t chunk =
      rows * std::min<std::uint64_t>(static_cast<std::uint64_t>(options_.chunk_batches),
                                     pairs_.size() / rows + 1);
  std::vector<std::vector<std::uint32_t>> batches;
  for (std::uint64_t start = 0; start < order.size(); start += chunk) {
    const auto part =
        std::span(order).subspan(start, std::min<std::uint64_t>(chunk, order.size() - start));
    sort_chunk(part, rows);
    std::vector<std::uint32_t> batch;
    std::uint64_t width = 0;
    for (const std::uint32_t index : part) {
      width = std::max(width, target_length(lengths_[index]));
      const bool full = batch.size() == static_cast<std::uint64_t>(options_.rows) ||
                        (budget > 0 && (batch.size() + 1) * width > budget);
      if (full && !batch.empty()) {
        batches.push_back(std::exchange(batch, {}));
        width = target_length(lengths_[index]);
      }
      batch.push_back(index);
    }
    batches.push_back(std::move(batch));
  }
  random.shuffle(std::span(batches));
  return batches;
}

void Batches::seek(std::int64_t step) {
  check(step >= 0, "a step is counted from 0, found " + std::to_string(step));
  if (epoch_ < 0 || step < first_step_) {
    epoch_ = 0;
    first_step_ = 0;
    planned_ = plan(0);
  }
  std::int64_t epoch = epoch_;
  if (options_.target_tokens == 0) {
    // Every epoch has as many batches as any other: go there at once.
    const auto size = static_cast<std::int64_t>(planned_.size());
    epoch = step / size;
    first_step_ = epoch * size;
    if (epoch != epoch_) planned_ = plan(epoch);
  } else {
    while (step - first_step_ >= static_cast<std::int64_t>(planned_.size())) {
      first_step_ += static_cast<std::int64_t>(planned_.size());
      planned_ = plan(++epoch);
    }
  }
  epoch_ = epoch;
}

std::int64_t Batches::typical_step() {
  seek(0);
  std::vector<double> sizes;
  double total = 0;
  for (const std::vector<std::uint32_t>& batch : planned_) {
    std::uint64_t target = 0;
    std::uint64_t source = 0;
    for (const std::uint32_t index : batch) {
      target = std::max(target, target_length(lengths_[index]));
      source = std::max(source, lengths_[index] & kLow);
    }
    sizes.push_back(static_cast<double>(batch.size()) * static_cast<double>(source + target));
    total += sizes.back();
  }
  const double mean = total / static_cast<double>(sizes.size());
  const auto nearest = std::min_element(sizes.begin(), sizes.end(), [mean](double a, double b) {
    return std::abs(a - mean) < std::abs(b - mean);
  });
  return nearest - sizes.begin();
}

std::int64_t Batches::epoch_of(std::int64_t step) {
  seek(step);
  return epoch_;
}

Batch Batches::at(std::int64_t step) {
  seek(step);
  std::vector<const Pair*> rows;
  for (const std::uint32_t index : planned_[static_cast<std::size_t>(step - first_step_)]) {
    rows.push_back(&pairs_[index]);
  }
  return make_batch(rows, *tokenizer_);
}

}  // namespace headrace::train
