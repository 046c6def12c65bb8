#include "backends/opencl/driver.hpp"

#include <stdexcept>

namespace opmux::backends::opencl {
namespace {

// Minimum work-group size: the kernels use groups of up to 16 by 16 items.
constexpr size_t kItems = 256;

template <class T>
T info_of(cl_device_id device, cl_device_info what) {
  T value{};
  clGetDeviceInfo(device, what, sizeof value, &value, nullptr);
  return value;
}

bool usable(cl_device_id device) {
  return info_of<cl_bool>(device, CL_DEVICE_AVAILABLE) == CL_TRUE &&
         info_of<cl_bool>(device, CL_DEVICE_COMPILER_AVAILABLE) == CL_TRUE &&
         info_of<size_t>(device, CL_DEVICE_MAX_WORK_GROUP_SIZE) >= kItems &&
         info_of<cl_bool>(device, CL_DEVICE_ENDIAN_LITTLE) == CL_TRUE;
}

std::vector<cl_platform_id> find_platforms() {
  cl_uint count = 0;
  if (clGetPlatformIDs(0, nullptr, &count) != CL_SUCCESS || count == 0) return {};
  std::vector<cl_platform_id> platforms(count);
  check(clGetPlatformIDs(count, platforms.data(), nullptr), "listing platforms");
  return platforms;
}

std::vector<cl_device_id> find_devices(cl_platform_id platform) {
  cl_uint count = 0;
  if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS) return {};
  std::vector<cl_device_id> devices(count);
  if (count == 0) return devices;
  check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, devices.data(), nullptr),
        "listing devices");
  return devices;
}

std::string build_log(cl_program program, cl_device_id device) {
  size_t size = 0;
  clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size);
  std::string log(size, '\0');
  clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr);
  return log;
}

}  // namespace

Device::Device(cl_device_id device, int32_t id) : device_(device), id_(id), streams_(c()) {
  cl_int status = CL_SUCCESS;
  context_.reset(clCreateContext(nullptr, 1, &device_, nullptr, nullptr, &status));
  check(status, "creating a context");
  queue_ = make_queue();
}

uint64_t Device::alignment() const {
  return info_of<cl_uint>(device_, CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8;
}

Queue Device::make_queue() const {
  cl_int status = CL_SUCCESS;
  Queue queue(clCreateCommandQueue(context_.get(), device_, CL_QUEUE_PROFILING_ENABLE, &status));
  check(status, "creating a queue");
  return queue;
}

cl_program Device::program(std::string_view source, const std::string& options) {
  const std::lock_guard lock(building_);
  Program& known = programs_[{source.data(), options}];
  if (known) return known.get();
  const char* text = source.data();
  const size_t size = source.size();
  cl_int status = CL_SUCCESS;
  Program program(clCreateProgramWithSource(context_.get(), 1, &text, &size, &status));
  check(status, "creating a program");
  if (clBuildProgram(program.get(), 1, &device_, options.c_str(), nullptr, nullptr) != CL_SUCCESS) {
    throw std::runtime_error("building a program: " + build_log(program.get(), device_));
  }
  known = std::move(program);
  return known.get();
}

Driver& Driver::get() {
  static Driver* driver = new Driver;
  return *driver;
}

Driver::Driver() {
  const std::vector<cl_platform_id> platforms = find_platforms();
  if (platforms.empty()) {
    missing_ = "no OpenCL platform: no driver is installed, or OCL_ICD_VENDORS hides it";
    return;
  }
  size_t seen = 0;
  for (cl_platform_id platform : platforms) {
    for (cl_device_id device : find_devices(platform)) {
      ++seen;
      if (usable(device)) devices_.push_back(std::make_unique<Device>(device, count()));
    }
  }
  if (!devices_.empty()) return;
  missing_ = seen == 0 ? "the OpenCL platforms have no device"
                       : "no OpenCL device has a compiler and work-groups of 256 items";
}

Device& Driver::device(int32_t id) const {
  if (id < 0 || id >= count()) {
    throw std::runtime_error("there is no device opencl:" + std::to_string(id));
  }
  return *devices_[static_cast<size_t>(id)];
}

}  // namespace opmux::backends::opencl
