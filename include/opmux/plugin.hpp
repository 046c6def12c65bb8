/// Plugins in C++: a header-only layer over abi.h for authors of implementations. It needs abi.h
/// and the standard library, nothing to link.
///
/// Functions and lambdas become entries of the C tables; whatever they throw is caught and becomes
/// an outcome: std::bad_alloc is OPMUX_RESOURCE, Declined is OPMUX_DECLINED, everything else
/// OPMUX_FAILED, with the text in the error sink. A function that returns nothing has succeeded
/// when it returns.
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
/// Texts are borrowed: pass literals, or strings that live as long as the library is loaded.
#pragma once

#include <opmux/plugin/backend.hpp>
#include <opmux/plugin/call.hpp>
#include <opmux/plugin/caps.hpp>
#include <opmux/plugin/entry.hpp>
#include <opmux/plugin/facts.hpp>
#include <opmux/plugin/implementation.hpp>
#include <opmux/plugin/outcome.hpp>
#include <opmux/plugin/tensor_arg.hpp>
