#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace opmux {

/// A temporary folder that only this user can access; removed by the destructor.
class PrivateFolder {
 public:
  PrivateFolder() {
    std::string name = testing::TempDir() + "opmux_test_XXXXXX";
    if (mkdtemp(name.data()) != nullptr) path_ = std::filesystem::canonical(name);
  }
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;
  ~PrivateFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }

  const std::filesystem::path& path() const { return path_; }
  std::string at(const std::string& name) const { return (path_ / name).string(); }
  /// Also creates the parent folders.
  std::string write(const std::string& name, std::string_view text) const {
    const std::filesystem::path file = path_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
    std::filesystem::permissions(file, std::filesystem::perms(0644));
    return file.string();
  }

 private:
  std::filesystem::path path_;
};

}  // namespace opmux
