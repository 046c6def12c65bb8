# Finds the Python interpreter for tests and tools. Prefers build/venv to the interpreter on PATH,
# because tools/setup installs the packages that tests, documents and benchmarks need there.
if(NOT Python3_EXECUTABLE AND EXISTS ${PROJECT_SOURCE_DIR}/build/venv/bin/python3)
  set(Python3_EXECUTABLE ${PROJECT_SOURCE_DIR}/build/venv/bin/python3)
endif()
find_package(Python3 REQUIRED COMPONENTS Interpreter)

# Sets `output` to the folder of an installed Python package, or to "" if it is not installed.
function(opmux_find_python_package name output)
  execute_process(COMMAND ${Python3_EXECUTABLE} -c
    "import importlib.util as u; s = u.find_spec('${name}'); print(s.submodule_search_locations[0] if s else '')"
    OUTPUT_VARIABLE folder ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  set(${output} "${folder}" PARENT_SCOPE)
endfunction()
