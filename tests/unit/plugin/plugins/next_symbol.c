/* A plugin for a later major version of the ABI: it exports another symbol. */
int opmux_plugin_query_v2(void);
int opmux_plugin_query_v2(void) { return 0; }
