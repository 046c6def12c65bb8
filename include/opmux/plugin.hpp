/// C++ layer over abi.h for authors of plugins. Header-only; it needs abi.h and the standard
/// library, and nothing has to be linked.
///
/// Functions and lambdas become entries of the C tables. Exceptions that they throw become
/// outcomes: std::bad_alloc is OPMUX_RESOURCE, Declined is OPMUX_DECLINED, any other is
/// OPMUX_FAILED, with its text in the caller's opmux_error. A function that returns void succeeds
/// when it returns.
///
/// A complete plugin:
///
///   #include <opmux/plugin.hpp>
///   namespace op = opmux::plugin;
///
///   OPMUX_PLUGIN_ENTRY(acme) {
///     return op::answer(host, out, [] {
///       return op::Plugin{"acme", "1.0"}.add(
///           op::Backend{"acme", OPMUX_KIND_VENDOR}.vendor("acme").add(
///               op::Impl{"acme.twice", "plain"}
///                   .signature("acme.twice(out Tensor y[N], Tensor x[N])")
///                   .caps(op::Caps{}.dtypes({op::f32}).contiguous())
///                   .run([](const op::Call& call) {
///                     const op::TensorArg y = call.tensor(0), x = call.tensor(1);
///                     for (int64_t i = 0; i < x.dim(0); ++i)
///                       y.data<float>()[i] = 2 * x.data<float>()[i];
///                   })))
///           .schema("acme.twice(out Tensor y[N], Tensor x[N])");
///     });
///   }
///
/// The builders (Plugin, Backend, Impl, Caps) collect the description; answer() makes it once and
/// keeps it until the process ends. Texts are borrowed: pass literals, or strings that live as long
/// as the library is loaded. Build with -fvisibility=hidden; OPMUX_PLUGIN_ENTRY exports the query
/// function.
///
/// Each part has a header with details: backend.hpp, implementation.hpp, caps.hpp, call.hpp,
/// tensor_arg.hpp, facts.hpp, outcome.hpp, entry.hpp.
#pragma once

#include <opmux/plugin/backend.hpp>
#include <opmux/plugin/call.hpp>
#include <opmux/plugin/caps.hpp>
#include <opmux/plugin/entry.hpp>
#include <opmux/plugin/facts.hpp>
#include <opmux/plugin/implementation.hpp>
#include <opmux/plugin/outcome.hpp>
#include <opmux/plugin/tensor_arg.hpp>
