// RAII handles for OpenCL objects, and OpenCL errors as exceptions.
#pragma once

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <opmux/plugin.hpp>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

namespace opmux::backends::opencl {

template <class T, cl_int (*kRelease)(T)>
struct Release {
  using pointer = T;
  void operator()(T object) const { kRelease(object); }
};
template <class T, cl_int (*kRelease)(T)>
using Handle = std::unique_ptr<std::remove_pointer_t<T>, Release<T, kRelease>>;

using Context = Handle<cl_context, clReleaseContext>;
using Queue = Handle<cl_command_queue, clReleaseCommandQueue>;
using Memory = Handle<cl_mem, clReleaseMemObject>;
using Program = Handle<cl_program, clReleaseProgram>;
using Kernel = Handle<cl_kernel, clReleaseKernel>;
using Event = Handle<cl_event, clReleaseEvent>;

// Maps an OpenCL status to an opmux outcome.
inline int32_t outcome_of(cl_int status) {
  switch (status) {
    case CL_SUCCESS: return OPMUX_OK;
    case CL_INVALID_BUFFER_SIZE:
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case CL_OUT_OF_RESOURCES:
    case CL_OUT_OF_HOST_MEMORY: return OPMUX_RESOURCE;
    case CL_DEVICE_NOT_AVAILABLE: return OPMUX_DEVICE_LOST;
    default: return OPMUX_FAILED;
  }
}

class Error : public std::runtime_error {
 public:
  Error(const std::string& what, cl_int status)
      : std::runtime_error(what + ": OpenCL status " + std::to_string(status)), status_(status) {}
  int32_t outcome() const { return outcome_of(status_); }

 private:
  cl_int status_;
};

inline void check(cl_int status, const char* what) {
  if (status != CL_SUCCESS) throw Error(what, status);
}

// Runs body and converts an Error to its outcome.
template <class Body>
int32_t attempted(opmux_error* error, const Body& body) {
  return plugin::guarded(error, [&] {
    try {
      return plugin::outcome_of(body);
    } catch (const Error& wrong) {
      return plugin::report(error, wrong.outcome(), "opencl.status", wrong.what());
    }
  });
}

}  // namespace opmux::backends::opencl
