#pragma once

/// Everything of the C++ face.

#include <opmux/version.h>
#include <opmux/constant.hpp>
#include <opmux/dispatchable.hpp>
#include <opmux/json.hpp>
#include <opmux/operator.hpp>
#include <opmux/point.hpp>
#include <opmux/replay.hpp>
#include <opmux/runtime.hpp>
#include <opmux/scope.hpp>
#include <opmux/state_page.hpp>
#include <opmux/typed_op.hpp>
