#include "cli/tune_sign.hpp"

#include <filesystem>
#include <iostream>

#include "base/system/clock.hpp"
#include "base/text.hpp"
#include "cli/signing.hpp"
#include "plugin/trust/signature.hpp"
#include "tune/bundle_file.hpp"

namespace opmux::cli {
namespace {

int sign_bundle(const std::string& path, const std::string& key) {
  const auto opened = tune::BundleFile::open(path);
  if (!opened) return wrong_use(base::concat(path, ": ", opened.error().message()));
  return write_signature(key, path, opened->bundle().digest());
}

}  // namespace

int verify_signature(const std::string& path, const std::string& digest,
                     const std::string& keyring) {
  const Result<std::string> signer = plugin::find_signer(
      std::filesystem::absolute(path), digest, std::filesystem::absolute(keyring), base::today(),
      plugin::PathRules::of_process());
  if (signer) {
    std::cout << path << ": signed by " << *signer << "\n";
    return kFine;
  }
  std::cout << "refused: " << signer.error().reason() << ": " << signer.error().message() << "\n";
  return kFound;
}

void add_tune_sign(CLI::App& tune, Action& action) {
  add_sign(tune, action, "Sign the header of a bundle: write FILE.sig next to it", "the bundle",
           sign_bundle);
}

}  // namespace opmux::cli
