/* A library that is no plugin. */
int some_function(void);
int some_function(void) { return 1; }
