// More than the query function, but nothing that others call.
__attribute__((visibility("default"))) int acme_answer(void) { return 42; }
