#include "backends/common/rows.hpp"
#include "backends/opencl/implementations.hpp"
#include "backends/opencl/kernel_texts.hpp"
#include "backends/opencl/launch.hpp"
#include "backends/opencl/row_layout.hpp"

namespace opmux::backends::opencl {
namespace {

constexpr int64_t kGptj = 1;

// Must match kernels/rotary_embedding.cl.
struct Turns {
  cl_long tokens, heads, head_step;
  cl_long pairs, neighbours;
  cl_long table_row;
};

Memory make_flag(Device& device) {
  cl_int status = CL_SUCCESS, nothing = 0;
  Memory flag(clCreateBuffer(device.context(), CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                             sizeof nothing, &nothing, &status));
  check(status, "allocating a flag");
  return flag;
}

// Positions are in device memory, so they can be checked only on the stream: the first kernel
// checks them all, and the others change nothing if it found an invalid position.
class Rotary {
 public:
  explicit Rotary(const plugin::Call& call)
      : device_(Driver::get().device(call.c().device.id)),
        options_(options(kRowItems, {{"X", word_of(call.tensor(0).dtype())},
                                     {"T", word_of(call.tensor(3).dtype())},
                                     {"P", call.tensor(2).is(plugin::i32) ? "int" : "long"}})),
        check_(device_, kRotaryEmbeddingText, "check_positions", options_),
        rotate_(device_, kRotaryEmbeddingText, "rotate_heads", options_) {
    const Memory flag = make_flag(device_);
    cl_command_queue queue = device_.stream(nullptr).queue();
    wait_for(check_.enqueue(queue, grid_for(1, kRowItems), NoTensor{}, RowLayout{}, cl_long{0},
                            cl_long{0}, flag));
    wait_for(rotate_.enqueue(queue, grid_for(1, kRowItems), NoTensor{}, RowLayout{}, NoTensor{},
                             RowLayout{}, NoTensor{}, RowLayout{}, Turns{}, flag));
  }

  Event enqueue(const plugin::Call& call, cl_command_queue queue, Pending& pending) {
    const plugin::TensorArg positions = call.tensor(2), cos_sin = call.tensor(3);
    const cl_long tokens = Rows(positions.c(), 0).count();
    pending.flag = make_flag(device_);
    pending.wrong_text = "rotary_embedding: a position is outside the cos_sin table";
    constexpr auto kGroup = static_cast<cl_long>(kRowItems);
    pending.before.push_back(
        check_.enqueue(queue, grid_for((tokens + kGroup - 1) / kGroup, kRowItems), positions,
                       layout_of(positions, 0), tokens, cl_long{cos_sin.dim(0)}, pending.flag));
    for (const plugin::TensorArg& heads : {call.tensor(0), call.optional_tensor(1)}) {
      if (!heads || heads.elements() == 0) continue;
      const Turns turns{tokens,
                        heads.dim(-2),
                        heads.stride(-2),
                        cos_sin.dim(1) / 2,
                        call.i64(4) == kGptj ? 1 : 0,
                        cos_sin.stride(0)};
      pending.before.push_back(rotate_.enqueue(
          queue, grid_for(tokens, kRowItems), heads, layout_of(heads, 2), positions,
          layout_of(positions, 0), cos_sin, layout_of(cos_sin), turns, pending.flag));
    }
    cl_event event = nullptr;
    check(clEnqueueReadBuffer(queue, pending.flag.get(), CL_FALSE, 0, sizeof pending.wrong,
                              &pending.wrong, 0, nullptr, &event),
          "enqueuing a copy of a flag");
    return Event(event);
  }

 private:
  Device& device_;
  std::string options_;
  Launch check_, rotate_;
};

int32_t run_rotary_embedding(const plugin::Call& call) {
  return on_stream(call, [&](cl_command_queue queue, Pending& pending) {
    return call.prepared<Rotary>()->enqueue(call, queue, pending);
  });
}

}  // namespace

void add_rotary_embedding(plugin::Backend& backend) {
  backend.add(implementation(
                  {.name = "rotary_embedding",
                   .signature =
                       "rotary_embedding(inout Tensor q[..., HQ, D], inout Tensor? k[..., HKV, D], "
                       "Tensor positions[...], Tensor cos_sin[P, R], "
                       "enum{neox, gptj} style = neox) where R <= D && R % 2 == 0",
                   .alike = {dtype_of("q"), dtype_of("k")},
                   .caps = plugin::Caps{}.dtypes("positions", {plugin::i32, plugin::i64})})
                  .plan([](const plugin::Call& call) { return std::make_shared<Rotary>(call); },
                        {device_of("q"), dtype_of("q"), dtype_of("positions"), dtype_of("cos_sin")})
                  .run(run_rotary_embedding));
}

}  // namespace opmux::backends::opencl
