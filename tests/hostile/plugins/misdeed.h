/*
 * What a hostile plugin does: misdeed() of the word in DEED, called at the stage in AT. With TWIN
 * it does the same thing as a good citizen would, and must be accepted.
 */
#ifndef OPMUX_TESTS_HOSTILE_MISDEED_H
#define OPMUX_TESTS_HOSTILE_MISDEED_H

#define AT_OPEN 1
#define AT_QUERY 2
#define AT_INIT 3
#define AT_SELF_TEST 4

void misdeed(void);

#endif
