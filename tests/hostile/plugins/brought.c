/* The library that brings.c needs. It needs another one, deeper.c. */
int deeper_number(void);
int brought_number(void);
int brought_number(void) { return NUMBER + deeper_number(); }
