# What differs when the tree is built as a Python wheel: everything lies inside the package, a wheel
# holds no symbolic links, and engines come along under their own names.
option(OPMUX_WHEEL_ENGINES "Put oneDNN's library and the OpenMP runtime into the wheel" ON)
find_package(Python 3.10 COMPONENTS Interpreter Development.Module REQUIRED)

# oneDNN's own wheel stands in the environment that builds, which may be a passing one.
set(opmux_find_onednn [[
from importlib.metadata import files
found = [f for f in files("onednn-devel-cpu-gomp") or [] if f.name == "dnnl-config.cmake"]
print(found[0].locate().resolve().parent if found else "")
]])
execute_process(COMMAND ${Python_EXECUTABLE} -c "${opmux_find_onednn}" ERROR_QUIET
                OUTPUT_STRIP_TRAILING_WHITESPACE OUTPUT_VARIABLE opmux_onednn_package)
