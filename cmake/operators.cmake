# The folders of operators/: everything about one standard operator, and operators/common, which the
# operators share. Lists of operators are generated from the folders, so that adding an operator adds
# one folder.

# Sets `output` to the sources of a role: operators/NAME/ROLE.cpp and operators/common/ROLE/*.cpp.
function(opmux_operator_sources role output)
  set(folder ${PROJECT_SOURCE_DIR}/operators)
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*/${role}.cpp ${folder}/common/${role}/*.cpp)
  list(SORT sources)
  set(${output} ${sources} PARENT_SCOPE)
endfunction()

# Generates the source `output`, which defines std::vector<TYPE> FUNCTION(). The vector has an element
# NAME() for every operators/NAME/ROLE.cpp. These files define TYPE NAME() in NAMESPACE; HEADER, a path
# for #include, declares TYPE and FUNCTION.
function(opmux_operator_table role output)
  cmake_parse_arguments(PARSE_ARGV 2 "" "" "HEADER;NAMESPACE;TYPE;FUNCTION" "")
  set(file ${role}.cpp)
  set(header ${_HEADER})
  set(namespace ${_NAMESPACE})
  set(type ${_TYPE})
  set(function ${_FUNCTION})
  set(declarations "")
  set(entries "")
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/operators/*/${file})
  list(SORT files)
  foreach(path IN LISTS files)
    get_filename_component(folder ${path} DIRECTORY)
    get_filename_component(name ${folder} NAME)
    string(APPEND declarations "${type} ${name}();\n")
    string(APPEND entries "      ${name}(),\n")
  endforeach()
  configure_file(${PROJECT_SOURCE_DIR}/cmake/operator_table.cpp.in ${output} @ONLY)
endfunction()
