# Generates the source `output` from `template`, with a table entry for every file in the folders `names`
# of `root`.
function(opmux_embed_templates root names template output)
  set(opmux_template_entries "")
  foreach(name IN LISTS names)
    file(GLOB_RECURSE files CONFIGURE_DEPENDS RELATIVE ${root}/${name} ${root}/${name}/*)
    list(FILTER files EXCLUDE REGEX "__pycache__")
    list(SORT files)
    foreach(file IN LISTS files)
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${root}/${name}/${file})
      file(READ ${root}/${name}/${file} text)
      string(APPEND opmux_template_entries
             "    {\"${name}\", \"${file}\", R\"template(${text})template\"},\n")
    endforeach()
  endforeach()
  configure_file(${template} ${output} @ONLY)
endfunction()
