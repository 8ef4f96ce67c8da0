#include "headrace/runtime/worker.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <string>
#include <utility>

#include <ATen/Parallel.h>
#include <pthread.h>

#include "headrace/runtime/leave_behind.h"

namespace headrace::runtime {
namespace {

// A waiting worker reports its own overdue wait, which says more; the caller only steps in later.
constexpr std::chrono::milliseconds kGrace{100};

}  // namespace

/// How the caller and the threads talk. Owned by both, so that a thread left behind stays valid.
struct Crew::Mailbox {
  std::mutex mutex;
  std::condition_variable posted;
  std::condition_variable done;
  std::shared_ptr<Step> step;
  std::uint64_t number = 0;  // of the step that is posted
  std::vector<bool> busy;
  bool stop = false;

  bool all_idle() const {
    return std::none_of(busy.begin(), busy.end(), [](bool b) { return b; });
  }

  /// Marks `worker` idle and tells the caller if it was the last.
  void finish(int worker) {
    bool last = false;
    {
      const std::lock_guard lock(mutex);
      busy[worker] = false;
      last = all_idle();
    }
    if (last) done.notify_one();
  }

  void work(int worker, Executor& executor) {
    std::uint64_t seen = 0;
    for (;;) {
      std::shared_ptr<Step> current;
      {
        std::unique_lock lock(mutex);
        posted.wait(lock, [&] { return stop || number != seen; });
        if (stop) return;
        seen = number;
        current = step;
      }
      executor.run(worker, *current);
      current.reset();
      finish(worker);
    }
  }
};

Crew::Crew(std::shared_ptr<Executor> executor, int intra_op_threads, base::LogSink log)
    : executor_(std::move(executor)), mailbox_(std::make_shared<Mailbox>()), log_(std::move(log)) {
  const int callers_threads = at::get_num_threads();
  mailbox_->busy.assign(executor_->num_workers(), true);
  for (int w = 0; w < executor_->num_workers(); ++w) {
    threads_.emplace_back([w, intra_op_threads, executor = executor_, mailbox = mailbox_] {
      pthread_setname_np(pthread_self(), ("headrace-" + std::to_string(w)).c_str());
      at::get_num_threads();  // LibTorch sets a thread up at its first use: that has to come first
      at::set_num_threads(intra_op_threads);
      mailbox->finish(w);
      mailbox->work(w, *executor);
    });
  }
  std::unique_lock lock(mailbox_->mutex);
  mailbox_->done.wait(lock, [&] { return mailbox_->all_idle(); });
  at::set_num_threads(callers_threads);
}

Crew::~Crew() {
  {
    const std::lock_guard lock(mailbox_->mutex);
    mailbox_->stop = true;
  }
  mailbox_->posted.notify_all();
  for (int w = 0; w < static_cast<int>(threads_.size()); ++w) {
    if (!is_stuck(w)) {
      threads_[w].join();
    } else {
      leave_behind(threads_[w], log_, executor_->describe(w));
    }
  }
}

void Crew::run(const std::shared_ptr<Step>& step) {
  if (!usable()) {
    throw base::CommError("this Pipeline is unusable since a worker got stuck (" +
                          executor_->describe(stuck_.front()) + "); build a new one");
  }
  executor_->open(*step);
  post(step);
  wait_until_done();
  if (executor_->failure().happened()) {
    if (usable()) executor_->clear();
    executor_->failure().rethrow();
  }
}

void Crew::post(const std::shared_ptr<Step>& step) {
  {
    const std::lock_guard lock(mailbox_->mutex);
    mailbox_->step = step;
    ++mailbox_->number;
    for (int w = 0; w < executor_->num_workers(); ++w) {
      executor_->progress(w).begin(nullptr);
      mailbox_->busy[w] = true;
    }
  }
  mailbox_->posted.notify_all();
}

void Crew::wait_until_done() {
  const std::chrono::duration<double> limit = executor_->limit() + kGrace;
  std::unique_lock lock(mailbox_->mutex);
  while (!mailbox_->all_idle()) {
    double oldest = -1;  // among the workers that may still come back
    for (int w = 0; w < executor_->num_workers(); ++w) {
      const double seconds = executor_->progress(w).seconds();
      if (!mailbox_->busy[w] || is_stuck(w)) continue;
      if (seconds > limit.count()) {
        give_up_on(w);
      } else {
        oldest = std::max(oldest, seconds);
      }
    }
    if (oldest < 0) break;
    mailbox_->done.wait_for(lock, limit - std::chrono::duration<double>(oldest),
                            [&] { return mailbox_->all_idle(); });
  }
  mailbox_->step.reset();
}

bool Crew::is_stuck(int worker) const {
  return std::find(stuck_.begin(), stuck_.end(), worker) != stuck_.end();
}

void Crew::give_up_on(int worker) {
  stuck_.push_back(worker);
  const double seconds = std::chrono::duration<double>(executor_->limit()).count();
  executor_->fail(std::make_exception_ptr(base::CommError(
                      "does not come back within the limit of " + std::to_string(seconds) +
                      " s; the Pipeline is unusable now. Raise PipelineOptions::timeout if a layer "
                      "may take this long")),
                  executor_->place_of(worker));
}

}  // namespace headrace::runtime
