/* A plugin of a later contract: another symbol. */
int opmux_plugin_query_v2(void);
int opmux_plugin_query_v2(void) { return 0; }
