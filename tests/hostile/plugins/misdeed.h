/*
 * misdeed() is the misbehaviour that DEED selects; it is called at the stage AT. With TWIN it
 * does a similar thing in an acceptable way, and the plugin must be accepted.
 */
#ifndef OPMUX_TESTS_HOSTILE_MISDEED_H
#define OPMUX_TESTS_HOSTILE_MISDEED_H

#define AT_OPEN 1
#define AT_QUERY 2
#define AT_INIT 3
#define AT_SELF_TEST 4

void misdeed(void);

#endif
