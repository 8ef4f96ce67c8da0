// The workers' threads: persistent, one per worker, each walking its list when a step is posted.
#pragma once

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "headrace/base/log.h"
#include "headrace/runtime/executor.h"

namespace headrace::runtime {

/// The threads of one Pipeline. They are started once and joined by the destructor; a thread that
/// is stuck in a layer cannot be joined: it is left behind, with all that it uses, and logged.
class Crew {
 public:
  /// @param intra_op_threads LibTorch threads inside each worker. The caller's own setting stays.
  Crew(std::shared_ptr<Executor> executor, int intra_op_threads, base::LogSink log);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  /// Runs `step` on all workers and waits for them. Throws the first failure of any worker.
  /// @throws base::CommError if a worker is stuck beyond the limit; the crew is unusable then.
  void run(const std::shared_ptr<Step>& step);

  bool usable() const { return stuck_.empty(); }

 private:
  struct Mailbox;
  void post(const std::shared_ptr<Step>& step);
  void wait_until_done();
  bool is_stuck(int worker) const;
  void give_up_on(int worker);

  std::shared_ptr<Executor> executor_;
  std::shared_ptr<Mailbox> mailbox_;
  std::vector<std::thread> threads_;
  std::vector<int> stuck_;
  base::LogSink log_;
};

}  // namespace headrace::runtime
