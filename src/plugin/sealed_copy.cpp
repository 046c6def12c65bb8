#include "plugin/sealed_copy.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/digest.hpp"
#include "base/whole_file.hpp"
#include "plugin/bounded_read.hpp"

namespace opmux::plugin {
namespace {

constexpr int kSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

Status cannot(std::string_view what) {
  return malformed("sealed", base::concat("cannot ", what,
                                          " in memory: ", std::generic_category().message(errno)));
}

int make_file(const std::string& path) {
  const std::string name = "opmux:" + path.substr(path.rfind('/') + 1).substr(0, 64);
  const int made = memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
  // Kernels before 6.3 do not know MFD_EXEC; there every memory file is executable.
  if (made >= 0 || errno != EINVAL) return made;
  return memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

}  // namespace

Result<base::Descriptor> sealed_copy(const CheckedFile& file) {
  const Result<FileBytes> bytes = read_bytes(file.descriptor.get(), file.identity.size);
  if (!bytes) return bytes.error();
  base::Descriptor copy(make_file(file.path));
  if (!copy) return cannot("create a file");
  const std::span<const std::byte> all = bytes->view();
  if (!base::write_all(copy.get(), {reinterpret_cast<const char*>(all.data()), all.size()})) {
    return cannot("write a file");
  }
  if (fcntl(copy.get(), F_ADD_SEALS, kSeals) != 0) return cannot("seal a file");
  const Result<FileBytes> sealed = read_bytes(copy.get(), file.identity.size);
  if (!sealed) return sealed.error();
  if (base::sha256_hex(sealed->view()) != file.digest) {
    return Status(Code::failed, "trust.changed",
                  base::concat(file.path, " was changed while it was checked"));
  }
  return copy;
}

}  // namespace opmux::plugin
