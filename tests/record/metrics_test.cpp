#include "headrace/record/metrics.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "headrace/base/error.h"

#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"

namespace headrace::record {

namespace {

StepRecord sample() {
  StepRecord record;
  record.step = 40;
  record.loss = 2.31415;
  record.grad_norm = 0.84213;
  record.lr = 3e-4;
  record.tokens = 1024;
  record.step_seconds = 0.125;
  record.bubble_rate = 0.1119;
  record.peak_bytes_by_stage = {1 << 20, 332'859'965};
  record.live_bytes_by_stage = {1000, 2000};
  record.busy_seconds_by_worker = {0.1, 0.11};
  record.wait_seconds_by_worker = {0.02, 0.01};
  return record;
}

TEST(Metrics, WriteOneObjectALine) {
  EXPECT_EQ(to_json_line(sample()),
            R"({"step":40,"loss":2.31415,"grad_norm":0.84213,"lr":0.0003,"tokens":1024,)"
            R"("step_seconds":0.125,"bubble_rate":0.1119,)"
            R"("peak_bytes_by_stage":[1048576,332859965],"live_bytes_by_stage":[1000,2000],)"
            R"("busy_seconds_by_worker":[0.1,0.11],"wait_seconds_by_worker":[0.02,0.01],)"
            R"("skipped":false})");
}

TEST(Metrics, ReadBackToTheSameBits) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 2000; ++i) {
    const std::uint64_t bits = random();
    StepRecord record = sample();
    std::memcpy(&record.loss, &bits, sizeof bits);
    if (!std::isfinite(record.loss)) {
      continue;
    }
    const double loss = parse_step_record(to_json_line(record), "m").loss;
    ASSERT_EQ(std::memcmp(&loss, &record.loss, sizeof loss), 0) << record.loss;
  }
  StepRecord record = sample();
  record.loss = -0.0;
  record.grad_norm = std::numeric_limits<double>::denorm_min();
  const StepRecord read = parse_step_record(to_json_line(record), "m");
  EXPECT_TRUE(std::signbit(read.loss));
  EXPECT_EQ(read, record);
}

TEST(Metrics, MarkNumbersThatAreNotFinite) {
  StepRecord record = sample();
  record.loss = std::numeric_limits<double>::infinity();
  record.skipped = true;
  const std::string line = to_json_line(record);
  EXPECT_NE(line.find(R"("loss":null)"), std::string::npos);
  EXPECT_NE(line.find(R"("skipped":true,"nonfinite":true})"), std::string::npos);
  EXPECT_TRUE(std::isnan(parse_step_record(line, "m").loss));
}

TEST(Metrics, AppendToAFileAndAreReadBack) {
  const base::TemporaryFolder folder;
  StepRecord second = sample();
  second.step = 41;
  {
    MetricsFile file(folder / "metrics.jsonl");
    file.append(sample());
    // Readable while the run goes on.
    EXPECT_EQ(read_metrics(folder / "metrics.jsonl").size(), 1U);
    file.append(second);
  }
  EXPECT_EQ(read_metrics(folder / "metrics.jsonl"), (std::vector<StepRecord>{sample(), second}));
}

TEST(Metrics, OfAKilledRunAreReadWithoutTheTornLineAndGoOnAfterIt) {
  const base::TemporaryFolder folder;
  const std::filesystem::path path = folder / "metrics.jsonl";
  base::write_file(path, to_json_line(sample()) + "\n{\"step\":41,\"lo");
  EXPECT_EQ(read_metrics(path).size(), 1U);
  MetricsFile(path).append(sample());
  EXPECT_EQ(base::read_file(path), to_json_line(sample()) + "\n" + to_json_line(sample()) + "\n");
}

TEST(Metrics, TellFileAndLineOfWhatIsWrong) {
  const base::TemporaryFolder folder;
  base::write_file(folder / "m", to_json_line(sample()) + "\n{\"step\": \"x\"}\n");
  const std::string message =
      base::message_of<base::IoError>([&] { (void)read_metrics(folder / "m"); });
  EXPECT_NE(message.find((folder / "m").string() + ":2"), std::string::npos) << message;
  EXPECT_NE(message.find("step"), std::string::npos);
}

TEST(ConsoleLine, TellsAStep) {
  EXPECT_EQ(console_line(sample(), 8412.4, 72.0),
            "step: 40  loss: 2.31415  grad_norm: 0.8421  lr: 3.0e-04  tps: 8,412  bubble: 11.2%  "
            "memory: 0.31GiB  eta: 1m12s");
}

TEST(ConsoleLine, TellsASkippedStepAndLeavesOutWhatIsNotKnown) {
  StepRecord record = sample();
  record.loss = std::nan("");
  record.skipped = true;
  record.peak_bytes_by_stage.clear();
  EXPECT_EQ(console_line(record, std::nan(""), std::nullopt),
            "step: 40  loss: nan  grad_norm: 0.8421  lr: 3.0e-04  tps: ?  bubble: 11.2%  skipped");
}

}  // namespace

}  // namespace headrace::record
