// Exports more than the query function, but no symbol that other libraries call.
__attribute__((visibility("default"))) int acme_answer(void) { return 42; }
