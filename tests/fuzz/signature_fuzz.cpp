// Key files, secret keys and signature files on arbitrary bytes: an accepted file must round-trip,
// a signature by an accepted secret key must hold, and an accepted signature file must not hold for
// another digest.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/crypto.hpp"
#include "plugin/trust/signature.hpp"

namespace {

namespace plugin = opmux::plugin;

void insist(bool holds) {
  if (!holds) std::abort();
}

/// Reads the text; an accepted file must read back as itself. Returns it.
template <class File>
opmux::Result<File> read(opmux::Result<File> (*reader)(std::string_view, std::string_view),
                         std::string_view text) {
  auto file = reader(text, "trust.test");
  if (!file) {
    insist(file.error().reason() == "trust.test" && !file.error().message().empty());
    return file;
  }
  const std::string once = plugin::text_of(*file);
  const auto again = reader(once, "trust.test");
  insist(again && plugin::text_of(*again) == once);
  return file;
}

void check_secret(std::string_view text) {
  const auto secret = read(&plugin::read_secret_key_file, text);
  if (!secret || !opmux::base::has_signatures()) return;
  const std::string digest(64, 'a');
  const auto made = plugin::make_signature(*secret, digest);
  if (!made) return insist(made.error().reason() == "trust.key");
  insist(opmux::base::signature_holds(made->key, plugin::signed_text(digest), made->signature));
  insist(!opmux::base::signature_holds(made->key, plugin::signed_text(std::string(64, 'b')),
                                       made->signature));
}

void check_all(std::string_view text) {
  const auto key = read(&plugin::read_key_file, text);
  if (key) insist(key->key.size() == 64 && !key->name.empty());
  check_secret(text);
  const auto signature = read(&plugin::read_signature_file, text);
  if (signature && opmux::base::has_signatures()) {
    (void)opmux::base::signature_holds(signature->key, plugin::signed_text(signature->sha256),
                                       signature->signature);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_all(text);
  for (const char* title : {"opmux-key 1\n", "opmux-secret-key 1\n", "opmux-signature 1\n"}) {
    check_all(title + std::string(text));
  }
  return 0;
}
