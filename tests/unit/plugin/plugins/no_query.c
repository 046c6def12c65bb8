/* A library that is not a plugin. */
int some_function(void);
int some_function(void) { return 1; }
