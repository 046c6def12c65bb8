#include "cli/tune_sign.hpp"

#include <filesystem>
#include <iostream>
#include <memory>

#include "base/system/clock.hpp"
#include "base/text.hpp"
#include "cli/signing.hpp"
#include "plugin/trust/signature.hpp"
#include "tune/bundle_file.hpp"

namespace opmux::cli {
namespace {

struct SignOptions {
  std::string file, key;
};

int sign(const SignOptions& options) {
  const auto opened = tune::BundleFile::open(options.file);
  if (!opened) return wrong_use(base::concat(options.file, ": ", opened.error().message()));
  return write_signature(options.key, options.file, opened->bundle().digest());
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
  auto options = std::make_shared<SignOptions>();
  CLI::App* command =
      tune.add_subcommand("sign", "Sign the header of a bundle: write FILE.sig next to it");
  command->add_option("FILE", options->file, "the bundle")->required();
  command->add_option("--key", options->key, "the secret key, NAME.key of `opmux plugin keygen`")
      ->required()
      ->type_name("FILE");
  command->callback([options, &action] { action = [options] { return sign(*options); }; });
}

}  // namespace opmux::cli
