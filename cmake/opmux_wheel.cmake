# Settings for the build of a Python wheel. Other files check OPMUX_WHEEL to install everything into the
# package, to avoid symbolic links, which wheels cannot contain, and to include the libraries of engines.
option(OPMUX_WHEEL_ENGINES "Include oneDNN's library and the OpenMP runtime in the wheel" ON)
# The bytes of a wheel must not depend on the folder in which it is built. A run path for the build tree would leave
# its length behind. Release builds contain no other path of the folder; -ffile-prefix-map would separate the objects
# from those of the release preset in the compiler cache.
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
find_package(Python 3.10 COMPONENTS Interpreter Development.Module REQUIRED)

# Finds oneDNN's wheel in the environment that builds, which may be a temporary one of pip.
set(opmux_find_onednn [[
from importlib.metadata import files
found = [f for f in files("onednn-devel-cpu-gomp") or [] if f.name == "dnnl-config.cmake"]
print(found[0].locate().resolve().parent if found else "")
]])
execute_process(COMMAND ${Python_EXECUTABLE} -c "${opmux_find_onednn}" ERROR_QUIET
                OUTPUT_STRIP_TRAILING_WHITESPACE OUTPUT_VARIABLE opmux_onednn_package)
