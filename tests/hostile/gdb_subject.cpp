// Loads the plugins of a folder, prints a line, and waits for the end of its input, so that a
// debugger can attach.
#include <iostream>
#include <string>

#include <opmux/opmux.hpp>

int main(int count, char** words) {
  if (count != 4) return 2;
  opmux::Options options;
  options.backends = false;
  options.environment = {{"OPMUX_STATE_DIR", words[2]}};
  options.plugins.folders = {words[1]};
  options.plugins.sealed = std::string(words[3]) == "sealed";
  opmux::Runtime runtime = opmux::Runtime::create(options).value();
  size_t loaded = 0;
  for (const opmux::PluginInfo& plugin : runtime.plugins().list()) loaded += plugin.loaded ? 1 : 0;
  std::cout << loaded << std::endl;
  std::cin.get();
}
