// headrace doctor: what works here.
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/DeviceAccelerator.h>
#include <ATen/Parallel.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "headrace/base/error.h"
#include "headrace/base/json.h"
#include "headrace/base/table.h"
#include "headrace/base/text.h"
#include "headrace/base/units.h"
#include "headrace/train/corpus.h"
#include "headrace/train/libtorch.h"

#include "app/commands_torch.h"
#include "app/program.h"

namespace headrace::app {
namespace {

struct Finding {
  std::string what;
  bool works = true;
  std::string detail;
};

Finding libtorch() {
  return {"LibTorch", true,
          train::libtorch_running() + ", compiled against " + train::libtorch_compiled()};
}

Finding processors() {
  return {"processors", true,
          std::to_string(std::thread::hardware_concurrency()) + " cores; LibTorch would use " +
              std::to_string(at::get_num_threads()) + " threads an operation"};
}

Finding memory() {
  const auto bytes = static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  return {"memory", true, base::bytes_text(bytes)};
}

Finding accelerators() {
  const auto accelerator = at::getAccelerator(/*checked=*/false);
  const bool any = accelerator.has_value() && at::hasCUDA();
  return {"accelerators", any, any ? "CUDA" : "none: stages run on the CPU"};
}

Finding numerics() {
  const at::Tensor x = at::ones({4, 4}).requires_grad_();
  x.matmul(x).sum().backward();
  const bool right = x.grad().defined() && x.grad().sum().item<double>() == 128;
  return {"forward and backward", right,
          right ? "a matrix product has its gradient" : "a matrix product has a wrong gradient"};
}

Finding data() {
  try {
    const train::Corpus corpus = train::read_corpus({});
    return {"data: iso-codes", true,
            base::thousands(corpus.counts.kept) + " pairs of " +
                base::thousands(corpus.counts.languages) + " languages"};
  } catch (const base::Error& error) {
    return {"data: iso-codes", false, error.what()};
  }
}

}  // namespace

int run_with_torch(const DoctorCommand& command) {
  const std::vector<Finding> findings{libtorch(),     processors(), memory(),
                                      accelerators(), numerics(),   data()};
  if (command.json) {
    nlohmann::json list = nlohmann::json::array();
    for (const Finding& finding : findings) {
      list.push_back(
          {{"what", finding.what}, {"works", finding.works}, {"detail", finding.detail}});
    }
    std::cout << base::json_text({{"format_version", 1}, {"findings", list}});
    return kDone;
  }
  base::Table table({"what", "works", "detail"});
  for (const Finding& finding : findings) {
    table.add({finding.what, finding.works ? "yes" : "no", finding.detail});
  }
  std::cout << table.to_text();
  return kDone;
}

}  // namespace headrace::app
