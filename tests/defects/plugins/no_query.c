/* A library without the query function of a plugin. */
extern int no_plugin_at_all(void);
int no_plugin_at_all(void) { return 1; }
