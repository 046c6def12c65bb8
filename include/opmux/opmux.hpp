/// The whole C++ API. Include this header, link opmux::opmux (CMake) or `pkg-config opmux`, and
/// start with Runtime:
///
///   opmux::Runtime engine = opmux::Runtime::create().value();
///   opmux::Operator softmax = engine.op("softmax").value();
///   float x[4] = {1, 2, 3, 4}, y[4];
///   opmux::Status status = softmax(opmux::TensorView(y, opmux::f32, {1, 4}),
///                                  opmux::TensorView(x, opmux::f32, {1, 4}));
///   if (!status.ok()) std::cerr << status.to_string() << "\n";
///
/// Rules that hold for every class and function:
/// - Errors are values: Status, or Result<T> with a value or a Status. Result::value() is the only
/// function that throws. The library prints nothing unless OPMUX_LOG is set, and never aborts or
/// exits.
/// - Views, spans and pointers passed to a function are borrowed until it returns, unless its
/// comment says that they are kept.
/// - A function may be called from any thread, several at a time, unless its comment says
/// otherwise.
/// - Every object made by a runtime (operators, plans, constants, instances, scopes, registrations)
/// must be destroyed before that runtime.
///
/// The examples in these headers are statements of a function body. They assume this header, an
/// `opmux::Runtime runtime` and the standard headers they name; each further assumption is stated.
#pragma once

#include <opmux/version.h>
#include <opmux/instance.hpp>
#include <opmux/points.hpp>
#include <opmux/runtime.hpp>
#include <opmux/state_page.hpp>
#include <opmux/typed.hpp>
