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
#define AT_IS_AVAILABLE 5
#define AT_VERIFY 6
#define AT_CREATE 7
#define AT_LOAD 8
#define AT_PLAN 9
#define AT_RUN 10

void misdeed(void);

#endif
