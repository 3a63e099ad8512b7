// Runs one rank of an all-reduce by Gloo. Arguments:
// --rank R --size N --address IP --store FOLDER --algorithm NAME --bytes-file FILE
#include <gloo/allreduce.h>
#include <gloo/allreduce_bcube.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <memory>

#include "steps.h"

namespace {

using Context = std::shared_ptr<gloo::Context>;

template <typename Algorithm>
std::unique_ptr<gloo::Algorithm> make(const Context& context, std::vector<float>& tensor) {
  return std::make_unique<Algorithm>(context, std::vector<float*>{tensor.data()}, static_cast<int>(tensor.size()));
}

std::unique_ptr<gloo::Algorithm> make(const std::string& name, const Context& context, std::vector<float>& tensor) {
  if (name == "ring") return make<gloo::AllreduceRing<float>>(context, tensor);
  if (name == "ring_chunked") return make<gloo::AllreduceRingChunked<float>>(context, tensor);
  if (name == "halving_doubling") return make<gloo::AllreduceHalvingDoubling<float>>(context, tensor);
  if (name == "bcube") return make<gloo::AllreduceBcube<float>>(context, tensor);
  std::fprintf(stderr, "gloo_allreduce: no algorithm %s\n", name.c_str());
  std::exit(2);
}

// Reduces by the segmented ring that PyTorch's Gloo backend uses.
void reduce_as_torch(const Context& context, std::vector<float>& tensor) {
  gloo::AllreduceOptions options(context);
  options.setOutput(tensor.data(), tensor.size());
  options.setReduceFunction(
      [](void* sum, const void* a, const void* b, size_t count) { gloo::sum<float>(sum, a, b, count); });
  options.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
  gloo::allreduce(options);
}

}  // namespace

int main(int argc, char** argv) {
  const peers::Arguments arguments = peers::parse(argc, argv);
  gloo::transport::tcp::attr address;
  address.hostname = arguments.address;
  auto device = gloo::transport::tcp::CreateDevice(address);
  auto context = std::make_shared<gloo::rendezvous::Context>(arguments.rank, arguments.size);
  gloo::rendezvous::FileStore store(arguments.store);
  context->connectFullMesh(store, device);

  auto tensors = peers::make_tensors(arguments);
  std::vector<std::unique_ptr<gloo::Algorithm>> algorithms;
  if (arguments.algorithm != "torch") {
    for (auto& tensor : tensors) algorithms.push_back(make(arguments.algorithm, context, tensor));
  }
  gloo::BarrierOptions all(context);
  peers::run(
      arguments, tensors, arguments.rank, [&] { gloo::barrier(all); },
      [&] {
        for (size_t i = 0; i < tensors.size(); ++i) {
          if (algorithms.empty()) {
            reduce_as_torch(context, tensors[i]);
          } else {
            algorithms[i]->run();
          }
        }
      });
  gloo::barrier(all);
}
