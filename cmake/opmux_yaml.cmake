# libyaml, which reads policy files. It is linked statically, with position-independent code and hidden
# symbols. OPMUX_YAML_ROOT is the prefix of an installed libyaml; without one, tools/libyaml builds it into
# build/libyaml. If there is none, configuring fails unless OPMUX_YAML is off, because the library
# could not read policy files.
set(OPMUX_YAML_ROOT ${PROJECT_SOURCE_DIR}/build/libyaml CACHE PATH "Prefix of the installed libyaml")
add_library(opmux_yaml INTERFACE)
if(NOT OPMUX_YAML)
  return()
endif()

if(NOT EXISTS ${OPMUX_YAML_ROOT}/include/yaml.h)
  execute_process(COMMAND ${PROJECT_SOURCE_DIR}/tools/libyaml)
endif()
find_library(OPMUX_YAML_LIBRARY libyaml.a PATHS ${OPMUX_YAML_ROOT}/lib NO_DEFAULT_PATH)
find_path(OPMUX_YAML_INCLUDE yaml.h PATHS ${OPMUX_YAML_ROOT}/include NO_DEFAULT_PATH)
if(NOT OPMUX_YAML_LIBRARY OR NOT OPMUX_YAML_INCLUDE)
  message(FATAL_ERROR "opmux needs libyaml to read policy files, found none in ${OPMUX_YAML_ROOT}, and "
    "could not build one. Either install a static, position-independent libyaml and pass "
    "-DOPMUX_YAML_ROOT=<its prefix>, or pass -DOPMUX_YAML=OFF for a library without policy files.")
endif()
target_include_directories(opmux_yaml SYSTEM INTERFACE ${OPMUX_YAML_INCLUDE})
target_link_libraries(opmux_yaml INTERFACE ${OPMUX_YAML_LIBRARY})
target_compile_definitions(opmux_yaml INTERFACE OPMUX_YAML YAML_DECLARE_STATIC)
