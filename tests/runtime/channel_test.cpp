#include "headrace/runtime/channel.h"

#include <thread>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace headrace::runtime {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kLong{20'000};

TEST(Channel, HandsOverTheTensorItself) {
  Channel channel;
  channel.open(2, 2);
  const at::Tensor value = at::ones({3});
  channel.send(1, {{value}, {false}});
  double waited = 0;
  const Packet packet = channel.receive(1, kLong, waited);
  EXPECT_TRUE(packet.values[0].is_same(value));
  EXPECT_EQ(waited, 0);
}

TEST(Channel, DeliversByMicrobatchWhateverTheOrderOfSends) {
  Channel channel;
  channel.open(3, 3);
  for (const int m : {2, 0, 1}) channel.send(m, {{at::full({1}, m)}, {false}});
  double waited = 0;
  for (const int m : {0, 1, 2}) {
    EXPECT_EQ(channel.receive(m, kLong, waited).values[0].item<int>(), m);
  }
}

TEST(Channel, ReceiverWaitsForItsOwnMicrobatch) {
  Channel channel;
  channel.open(2, 2);
  std::thread sender([&] {
    channel.send(1, {{at::full({1}, 1)}, {false}});
    channel.send(0, {{at::full({1}, 0)}, {false}});
  });
  double waited = 0;
  EXPECT_EQ(channel.receive(0, kLong, waited).values[0].item<int>(), 0);
  EXPECT_EQ(channel.receive(1, kLong, waited).values[0].item<int>(), 1);
  sender.join();
}

TEST(Channel, WaitHasALimitAndBooksItsTime) {
  Channel channel;
  channel.open(1, 1);
  double waited = 0;
  EXPECT_THROW(channel.receive(0, milliseconds(20), waited), TimedOut);
  EXPECT_GE(waited, 0.02);
}

TEST(Channel, CloseEndsAWaitAndFreesWhatIsInFlight) {
  Channel channel;
  channel.open(2, 2);
  at::Tensor value = at::ones({3});
  channel.send(1, {{value}, {false}});
  EXPECT_EQ(value.use_count(), 2u);
  std::thread closer([&] { channel.close(); });
  double waited = 0;
  EXPECT_THROW(channel.receive(0, kLong, waited), Closed);
  closer.join();
  EXPECT_EQ(value.use_count(), 1u);
  EXPECT_THROW(channel.send(0, {}), Closed);
}

TEST(Channel, MoreThanTheBoundIsABrokenInvariant) {
  Channel channel;
  channel.open(3, 1);
  channel.send(0, {});
  EXPECT_THROW(channel.send(1, {}), std::logic_error);
}

TEST(Gate, OpensWhenAllHaveArrived) {
  Gate gate;
  gate.open(2);
  double waited = 0;
  gate.arrive();
  EXPECT_THROW(gate.wait(milliseconds(5), waited), TimedOut);
  std::thread other([&] { gate.arrive(); });
  gate.wait(kLong, waited);
  other.join();
  gate.open(1);
  EXPECT_THROW(gate.wait(milliseconds(5), waited), TimedOut);
  gate.close();
  EXPECT_THROW(gate.wait(kLong, waited), Closed);
}

}  // namespace
}  // namespace headrace::runtime
