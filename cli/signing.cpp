#include "cli/signing.hpp"

#include <cerrno>
#include <cstring>
#include <iostream>
#include <memory>
#include <optional>
#include <utility>

#include "base/system/files.hpp"
#include "base/text.hpp"
#include "plugin/trust/signature.hpp"

namespace opmux::cli {

int write_signature(const std::string& key_file, const std::string& path,
                    const std::string& digest) {
  const std::optional<std::string> text = read_text(key_file);
  if (!text) return kWrongUse;
  const auto key = plugin::read_secret_key_file(*text, "trust.key");
  if (!key) return wrong_use(base::concat(key_file, ": ", key.error().message()));
  const auto signature = plugin::make_signature(*key, digest);
  if (!signature) return wrong_use(signature.error().message());
  const std::string written = path + ".sig";
  if (!base::replace_file(written, plugin::text_of(*signature), 0644))
    return wrong_use(base::concat("cannot write ", written, ": ", std::strerror(errno)));
  std::cout << "wrote " << written << "\n";
  return kFine;
}

void add_sign(CLI::App& group, Action& action, const std::string& description,
              const std::string& about_file, SignFile sign) {
  auto words = std::make_shared<std::pair<std::string, std::string>>();
  CLI::App* command = group.add_subcommand("sign", description);
  command->add_option("FILE", words->first, about_file)->required();
  command->add_option("--key", words->second, "the secret key, NAME.key of `opmux plugin keygen`")
      ->required()
      ->type_name("FILE");
  command->callback([words, sign, &action] {
    action = [words, sign] { return sign(words->first, words->second); };
  });
}

}  // namespace opmux::cli
