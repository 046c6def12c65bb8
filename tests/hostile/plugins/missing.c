/* A dependency that a plugin does not find. */
int missing_answer(void);
int missing_answer(void) { return 0; }
