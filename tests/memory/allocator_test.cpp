#include "headrace/memory/allocator.h"

#include <barrier>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>

namespace headrace::memory {
namespace {

// ThreadSanitizer does not see the barriers of OpenMP's threads, so kernels run on one.
class OneIntraOpThread : public ::testing::Environment {
 public:
  void SetUp() override { at::set_num_threads(1); }
};
const ::testing::Environment* const one_thread =
    ::testing::AddGlobalTestEnvironment(new OneIntraOpThread);

at::Tensor bytes_tensor(std::int64_t bytes) {
  return at::empty({bytes}, at::kByte);
}

// First in the file: it must see LibTorch's own allocator.
TEST(InstallAllocator, LeavesEarlierTensorsAlone) {
  EXPECT_FALSE(allocator_installed());
  at::Tensor early = at::arange(1000);
  at::Tensor other = at::ones({50'000});
  install_allocator();
  install_allocator();
  EXPECT_TRUE(allocator_installed());
  const auto account = std::make_shared<Account>();
  const AccountGuard guard(account);
  EXPECT_EQ(early.sum().item<std::int64_t>(), 499'500);
  other.resize_({100'000});
  other.fill_(2);
  early = at::Tensor();
  other = at::Tensor();
  EXPECT_EQ(account->live_bytes(), 0);
}

class CountedAllocator : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { install_allocator(); }
  std::shared_ptr<Account> account_ = std::make_shared<Account>();
};

TEST_F(CountedAllocator, CountsWhatTensorsAskForInUnitsOf64) {
  const AccountGuard guard(account_);
  const at::Tensor one = bytes_tensor(1);
  EXPECT_EQ(account_->live_bytes(), 64);
  const at::Tensor two = at::empty({1000});
  EXPECT_EQ(account_->live_bytes(), 64 + 4032);
  EXPECT_EQ(account_->allocations(), 2);
}

TEST_F(CountedAllocator, KnowsThePeakOfASequence) {
  {
    const AccountGuard guard(account_);
    at::Tensor a = bytes_tensor(1024);
    at::Tensor b = bytes_tensor(2048);
    a = at::Tensor();
    EXPECT_EQ(account_->live_bytes(), 2048);
    EXPECT_EQ(account_->peak_bytes(), 3072);
    account_->reset_peak();
    EXPECT_EQ(account_->peak_bytes(), 2048);
    at::Tensor c = bytes_tensor(512);
    EXPECT_EQ(account_->peak_bytes(), 2560);
  }
  EXPECT_EQ(account_->live_bytes(), 0);
  EXPECT_EQ(account_->peak_bytes(), 2560);
}

TEST_F(CountedAllocator, SeesEveryWayATensorIsMade) {
  const AccountGuard guard(account_);
  const at::Tensor x = at::randn({64, 64});
  const auto expect_counted = [this](const char* what, const auto& make) {
    const std::int64_t before = account_->live_bytes();
    const at::Tensor made = make();
    EXPECT_GE(account_->live_bytes() - before, static_cast<std::int64_t>(made.nbytes())) << what;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(made.const_data_ptr()) % 64, 0U) << what;
  };
  expect_counted("empty", [] { return at::empty({100}); });
  expect_counted("empty_strided", [] { return at::empty_strided({4, 8}, {1, 4}); });
  expect_counted("zeros", [] { return at::zeros({100}); });
  expect_counted("ones", [] { return at::ones({100}, at::kDouble); });
  expect_counted("arange", [] { return at::arange(100); });
  expect_counted("clone", [&] { return x.clone(); });
  expect_counted("to", [&] { return x.to(at::kDouble); });
  expect_counted("contiguous", [&] { return x.t().contiguous(); });
  expect_counted("new_empty", [&] { return x.new_empty({100}); });
  expect_counted("add", [&] { return x + x; });
  expect_counted("matmul", [&] { return x.matmul(x); });
  expect_counted("softmax", [&] { return x.softmax(-1); });
  expect_counted("layer_norm", [&] { return at::layer_norm(x, {64}); });
  expect_counted("cat", [&] { return at::cat({x, x}); });
  expect_counted("resize_", [&] { return at::empty({1}).resize_({500}); });
  expect_counted("convolution", [&] {
    return at::conv2d(x.view({1, 1, 64, 64}), at::ones({2, 1, 3, 3}));
  });
  expect_counted("embedding", [&] { return at::embedding(x, at::arange(10)); });
  expect_counted("gradient", [&] {
    const at::Tensor leaf = x.detach().clone().requires_grad_();
    leaf.square().sum().backward();
    return leaf.grad();
  });
}

TEST_F(CountedAllocator, ReturnsToTheSameBytesAfterEachStep) {
  const AccountGuard guard(account_);
  const at::Tensor weight = at::randn({32, 32}).requires_grad_();
  std::vector<std::int64_t> live;
  for (int step = 0; step < 20; ++step) {
    at::gelu(at::randn({16, 32}).matmul(weight)).softmax(-1).square().sum().backward();
    live.push_back(account_->live_bytes());
  }
  for (std::size_t step = 1; step < live.size(); ++step) {
    EXPECT_EQ(live[step], live[1]) << step;
  }
}

TEST_F(CountedAllocator, ChargesWhoAllocatesWhoeverFrees) {
  at::Tensor tensor;
  std::thread([&] {
    const AccountGuard guard(account_);
    tensor = bytes_tensor(4096);
  }).join();
  const auto other = std::make_shared<Account>();
  EXPECT_EQ(account_->live_bytes(), 4096);
  std::thread([&] {
    const AccountGuard guard(other);
    tensor = at::Tensor();
  }).join();
  EXPECT_EQ(account_->live_bytes(), 0);
  EXPECT_EQ(other->live_bytes(), 0);
  EXPECT_EQ(other->peak_bytes(), 0);
}

TEST_F(CountedAllocator, GuardsNestAndNullChargesNobody) {
  const auto inner_account = std::make_shared<Account>();
  std::vector<at::Tensor> kept;
  {
    const AccountGuard outer(account_);
    {
      const AccountGuard inner(inner_account);
      kept.push_back(bytes_tensor(64));
      const AccountGuard nobody(nullptr);
      kept.push_back(bytes_tensor(128));
    }
    kept.push_back(bytes_tensor(256));
  }
  kept.push_back(bytes_tensor(512));
  EXPECT_EQ(inner_account->live_bytes(), 64);
  EXPECT_EQ(account_->live_bytes(), 256);
}

TEST_F(CountedAllocator, BlocksKeepTheirAccountAlive) {
  std::weak_ptr<Account> watched;
  at::Tensor tensor;
  {
    auto owned = std::make_shared<Account>();
    watched = owned;
    const AccountGuard guard(std::move(owned));
    tensor = bytes_tensor(100);
  }
  ASSERT_FALSE(watched.expired());
  EXPECT_EQ(watched.lock()->live_bytes(), 128);
  tensor = at::Tensor();
  EXPECT_TRUE(watched.expired());
}

TEST_F(CountedAllocator, PeakIsExactWhenThreadsAllocateTogether) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 200;
  std::barrier meet(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      const AccountGuard guard(account_);
      for (int round = 0; round < kRounds; ++round) {
        at::Tensor held = bytes_tensor(1024);
        meet.arrive_and_wait();
        held = at::Tensor();
        meet.arrive_and_wait();
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(account_->peak_bytes(), kThreads * 1024);
  EXPECT_EQ(account_->live_bytes(), 0);
  EXPECT_EQ(account_->allocations(), kThreads * kRounds);
}

TEST_F(CountedAllocator, ATensorMayOutliveTheThreadLocalsOfItsThread) {
  std::thread([this] {
    static thread_local std::optional<at::Tensor> last;  // destroyed after the thread's cache
    last.emplace();
    const AccountGuard guard(account_);
    last = bytes_tensor(1000);
  }).join();
  EXPECT_EQ(account_->live_bytes(), 0);
}

TEST_F(CountedAllocator, AnEmptyTensorHasNoBlock) {
  const AccountGuard guard(account_);
  const at::Tensor empty = at::empty({0, 5});
  EXPECT_EQ(empty.const_data_ptr(), nullptr);
  EXPECT_EQ(account_->allocations(), 0);
}

TEST_F(CountedAllocator, OffersTheRawInterfaceAndClones) {
  const AccountGuard guard(account_);
  c10::Allocator* allocator = c10::GetCPUAllocator();
  void* raw = allocator->raw_allocate(10);
  std::fill_n(static_cast<char*>(raw), 10, 'x');
  {
    const c10::DataPtr copy = allocator->clone(raw, 10);
    EXPECT_EQ(static_cast<char*>(copy.get())[9], 'x');
    EXPECT_EQ(account_->live_bytes(), 128);
  }
  allocator->raw_deallocate(raw);
  allocator->raw_deallocate(nullptr);
  EXPECT_EQ(account_->live_bytes(), 0);
}

TEST_F(CountedAllocator, RefusesAnAbsurdSizeAndCountsNothing) {
  const AccountGuard guard(account_);
  try {
    bytes_tensor(std::int64_t{1} << 50U);
    FAIL() << "allocated";
  } catch (const c10::OutOfMemoryError& error) {
    EXPECT_NE(std::string(error.what()).find("1125899906842624 bytes"), std::string::npos);
  }
  EXPECT_EQ(account_->live_bytes(), 0);
  EXPECT_EQ(account_->peak_bytes(), 0);
}

TEST_F(CountedAllocator, ReleaseCachedShrinksWhatIsHeld) {
  release_cached();
  const std::int64_t before = held_bytes();
  at::Tensor kept = bytes_tensor(1 << 20);
  bytes_tensor(1 << 21);
  release_cached();
  EXPECT_EQ(held_bytes() - before, (1 << 20) + 64);
}

}  // namespace
}  // namespace headrace::memory
