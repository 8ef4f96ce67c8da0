// Measuring with a limit: a layer that hangs must not hang the caller.
#include <atomic>
#include <future>
#include <memory>
#include <thread>
#include <utility>

#include <ATen/Parallel.h>

#include "headrace/base/error.h"
#include "headrace/base/text.h"
#include "headrace/runtime/leave_behind.h"
#include "headrace/runtime/measure.h"

namespace headrace::runtime {

std::vector<plan::LayerProfile> measure_layers_within(std::chrono::milliseconds limit,
                                                      int intra_op_threads,
                                                      const std::vector<model::NamedLayer>& layers,
                                                      const std::vector<at::Tensor>& microbatch,
                                                      const MeasureOptions& options,
                                                      const base::LogSink& log) {
  const int callers_threads = at::get_num_threads();
  const auto current = std::make_shared<std::atomic<int>>(0);
  MeasureOptions told = options;
  told.current_layer = current.get();
  std::packaged_task<std::vector<plan::LayerProfile>()> task([intra_op_threads, layers, microbatch,
                                                              told, current] {
    at::get_num_threads();  // LibTorch sets a thread up at its first use: that has to come first
    at::set_num_threads(intra_op_threads);
    return measure_layers(layers, microbatch, told);
  });
  auto profiles = task.get_future();
  std::thread thread(std::move(task));
  const bool in_time = profiles.wait_for(limit) == std::future_status::ready;
  at::set_num_threads(callers_threads);
  if (in_time) {
    thread.join();
    return profiles.get();
  }
  const std::string what = "layer '" + layers[*current].name + "', which is being measured,";
  leave_behind(thread, log, what);
  throw base::CommError(
      what + " does not come back within the limit of " +
      base::fixed_text(std::chrono::duration<double>(limit).count(), 1) +
      " s. Raise PipelineOptions::timeout if a layer may take this long, or cut the net by hand "
      "(layers_per_stage) or by parameters (balance)");
}

}  // namespace headrace::runtime
