# Generates the source `output` from `template`, with a table entry for every NAME/NAME.schema of a
# folder.
# The leading block of `#` lines is the summary of the operator. `#! data_checked` marks an operator
# whose kernels validate data. `#! mixed_devices` allows tensors on several devices. `#! integer NAME` marks an output that is created with dtype i64 if the
# caller does not pass one.
function(opmux_embed_schemas folder template output)
  file(GLOB files CONFIGURE_DEPENDS ${folder}/*/*.schema)
  list(SORT files)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files})
  set(opmux_schema_entries "")
  foreach(file IN LISTS files)
    get_filename_component(name ${file} NAME_WE)
    file(READ ${file} text)
    set(rest "${text}")
    set(summary "")
    set(data_checked false)
    set(integer "")
    while(rest MATCHES "^#(!?) *([^\n]*)\n(.*)$")
      set(rest "${CMAKE_MATCH_3}")
      if(NOT CMAKE_MATCH_1)
        string(APPEND summary " ${CMAKE_MATCH_2}")
      elseif(CMAKE_MATCH_2 STREQUAL "data_checked")
        set(data_checked true)
      elseif(CMAKE_MATCH_2 MATCHES "^integer ([a-z_]+)$")
        set(integer ${CMAKE_MATCH_1})
      elseif(NOT CMAKE_MATCH_2 STREQUAL "mixed_devices") # which the parser of schemas reads
        message(FATAL_ERROR "${file}: unknown mark '#! ${CMAKE_MATCH_2}'")
      endif()
    endwhile()
    string(STRIP "${summary}" summary)
    string(APPEND opmux_schema_entries
           "    {\"${name}\", R\"schema(${text})schema\",\n     R\"schema(${summary})schema\", ${data_checked}, \"${integer}\"},\n")
  endforeach()
  configure_file(${template} ${output} @ONLY)
endfunction()
