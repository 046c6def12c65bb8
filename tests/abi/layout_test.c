#include "layout_test.h"
