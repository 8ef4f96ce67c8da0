#include "headrace/memory/block_cache.h"

#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "headrace/memory/size_class.h"

namespace headrace::memory {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kCaching = false;
#else
constexpr bool kCaching = true;
#endif

class BlockCache : public ::testing::Test {
 protected:
  void SetUp() override {
    release_cached_blocks();
    held_before_ = held_block_bytes();
  }
  std::int64_t grown() const { return held_block_bytes() - held_before_; }

 private:
  std::int64_t held_before_ = 0;
};

// Hands blocks from one thread to another, at most `most` at a time.
class Queue {
 public:
  explicit Queue(std::size_t most) : most_(most) {}
  void push(Block* block) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return blocks_.size() < most_; });
    blocks_.push_back(block);
    changed_.notify_all();
  }
  Block* pop() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !blocks_.empty(); });
    Block* block = blocks_.front();
    blocks_.pop_front();
    changed_.notify_all();
    return block;
  }

 private:
  std::size_t most_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Block*> blocks_;
};

TEST_F(BlockCache, BlocksAreAlignedDisjointAndLargeEnough) {
  std::vector<Block*> blocks;
  for (const std::size_t bytes : {1U, 63U, 64U, 65U, 1000U, 4096U, 100'000U, 3'000'000U}) {
    for (int copy = 0; copy < 3; ++copy) {
      Block* block = take_block(bytes);
      ASSERT_NE(block, nullptr);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block->data()) % 64, 0U);
      std::memset(block->data(), static_cast<int>(blocks.size()), bytes);
      blocks.push_back(block);
    }
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_EQ(*static_cast<unsigned char*>(blocks[i]->data()), i);
    give_block(blocks[i]);
  }
}

TEST_F(BlockCache, ARepeatedStepAsksTheSystemOnlyOnce) {
  const auto step = [] {
    std::vector<Block*> blocks;
    for (std::size_t bytes = 100; bytes < 4'000'000; bytes += bytes / 3) {
      blocks.push_back(take_block(bytes));
    }
    for (Block* block : blocks) {
      give_block(block);
    }
  };
  step();
  const std::int64_t after_first = grown();
  for (int i = 0; i < 1000; ++i) {
    step();
  }
  EXPECT_EQ(grown(), after_first);
}

TEST_F(BlockCache, ReleaseGivesAllBack) {
  for (const std::size_t bytes : {100U, 10'000U, 1'000'000U}) {
    give_block(take_block(bytes));
  }
  EXPECT_EQ(grown() > 0, kCaching);
  release_cached_blocks();
  EXPECT_EQ(grown(), 0);
}

class HandOver : public BlockCache, public ::testing::WithParamInterface<std::size_t> {};

TEST_P(HandOver, MemoryStaysBoundedWhenAnotherThreadFrees) {
  const std::size_t bytes = GetParam();
  constexpr int kBlocks = 5'000;
  constexpr int kInFlight = 8;
  Queue queue(kInFlight);
  std::int64_t most = 0;
  std::thread consumer([&queue] {
    for (int i = 0; i < kBlocks; ++i) {
      give_block(queue.pop());
    }
  });
  for (int i = 0; i < kBlocks; ++i) {
    queue.push(take_block(bytes));
    most = std::max(most, grown());
  }
  consumer.join();
  // In flight, two threads' lists, and a batch on its way: never the 5,000 that went through.
  const auto one = static_cast<std::int64_t>(sizeof(Block) + class_bytes(class_of(bytes)));
  EXPECT_LE(most, (kInFlight + 4 + 5 * std::max<std::int64_t>(1, 32 * 1024 / one)) * one);
}

INSTANTIATE_TEST_SUITE_P(Sizes, HandOver, ::testing::Values(1'024, 40'000, 260'000, 2'000'000));

TEST_F(BlockCache, AThreadLeavesItsBlocksToTheOthers) {
  const auto use = [] {
    std::vector<Block*> blocks;
    for (int i = 0; i < 40; ++i) {
      blocks.push_back(take_block(1'000));
    }
    for (Block* block : blocks) {
      give_block(block);
    }
  };
  std::thread(use).join();
  const std::int64_t after_first = grown();
  for (int i = 0; i < 20; ++i) {
    std::thread(use).join();
  }
  EXPECT_EQ(grown(), after_first);
}

TEST_F(BlockCache, AThreadKeepsAtMostFourMiB) {
  std::int64_t kept = 0;
  std::thread([this, &kept] {
    for (int c = 0; class_bytes(c) <= 256U << 10U; ++c) {
      std::vector<Block*> blocks;
      for (int i = 0; i < 100; ++i) {
        blocks.push_back(take_block(class_bytes(c)));
      }
      for (Block* block : blocks) {
        give_block(block);
      }
    }
    std::thread(release_cached_blocks).join();  // empties the pool, not this thread's lists
    kept = grown();
  }).join();
  EXPECT_LE(kept, 4 * kMiB);
}

TEST_F(BlockCache, ChangingSizesDoNotPileUp) {
  constexpr std::int64_t kLargest = 8 * kMiB;
  std::int64_t most = 0;
  for (int round = 0; round < 3; ++round) {
    for (std::int64_t bytes = 300'000; bytes < kLargest; bytes += 50'000) {
      std::vector<Block*> blocks;
      for (int i = 0; i < 8; ++i) {
        blocks.push_back(take_block(static_cast<std::size_t>(bytes)));
      }
      for (Block* block : blocks) {
        give_block(block);
      }
      most = std::max(most, grown());
    }
  }
  // 64 MiB are in use at most; cached at most as much again and the slack.
  EXPECT_LE(most, (2 * 8 * kLargest) + 64 * kMiB + kMiB);
}

TEST_F(BlockCache, SurvivesManyThreadsThatFreeEachOthersBlocks) {
  constexpr int kThreads = 4;
  std::vector<Block*> shared(64, nullptr);
  std::mutex mutex;
  const auto work = [&](unsigned seed) {
    std::mt19937 random(seed);
    for (int i = 0; i < 20'000; ++i) {
      Block* mine = take_block(4 + random() % (random() % 50 == 0 ? 600'000 : 5'000));
      *static_cast<unsigned*>(static_cast<void*>(mine->data())) = seed;
      {
        const std::lock_guard lock(mutex);
        std::swap(mine, shared[random() % shared.size()]);
      }
      if (mine != nullptr) {
        give_block(mine);
      }
    }
  };
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < kThreads; ++seed) {
    threads.emplace_back(work, seed);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (Block* block : shared) {
    if (block != nullptr) {
      give_block(block);
    }
  }
  release_cached_blocks();
  EXPECT_EQ(grown(), 0);
}

}  // namespace
}  // namespace headrace::memory
