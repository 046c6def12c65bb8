/* A library without the one symbol that a plugin has. */
extern int no_plugin_at_all(void);
int no_plugin_at_all(void) { return 1; }
