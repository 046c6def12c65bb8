# yaml-cpp as a private part of the library: static, position independent, its symbols hidden. Where
# tools/yaml_cpp put one, that is taken; OPMUX_YAML_ROOT names another.
set(OPMUX_YAML_ROOT ${PROJECT_SOURCE_DIR}/build/yaml-cpp CACHE PATH "Where yaml-cpp is installed")
if(OPMUX_YAML AND OPMUX_DEVELOPER_MODE AND NOT EXISTS ${OPMUX_YAML_ROOT}/include/yaml-cpp/parser.h)
  execute_process(COMMAND ${PROJECT_SOURCE_DIR}/tools/yaml_cpp)
endif()
find_library(OPMUX_YAML_LIBRARY libyaml-cpp.a PATHS ${OPMUX_YAML_ROOT}/lib NO_DEFAULT_PATH)
find_path(OPMUX_YAML_INCLUDE yaml-cpp/parser.h PATHS ${OPMUX_YAML_ROOT}/include NO_DEFAULT_PATH)
add_library(opmux_yaml INTERFACE)
if(OPMUX_YAML AND OPMUX_YAML_LIBRARY AND OPMUX_YAML_INCLUDE)
  target_include_directories(opmux_yaml SYSTEM INTERFACE ${OPMUX_YAML_INCLUDE})
  target_link_libraries(opmux_yaml INTERFACE ${OPMUX_YAML_LIBRARY})
  target_compile_definitions(opmux_yaml INTERFACE OPMUX_YAML YAML_CPP_STATIC_DEFINE)
else()
  message(STATUS "No yaml-cpp in ${OPMUX_YAML_ROOT} (tools/yaml_cpp makes one): this build reads no "
                 "policy files")
endif()
