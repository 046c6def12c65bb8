#pragma once

#include <span>
#include <string_view>

namespace opmux::cli {

/// One file of a project that `opmux plugin new` writes. The projects in cli/templates are complete
/// projects of a plugin named "acme".
struct TemplateFile {
  std::string_view project;  ///< "c", "cpp", "python"
  std::string_view path, text;
};

std::span<const TemplateFile> template_files();

}  // namespace opmux::cli
