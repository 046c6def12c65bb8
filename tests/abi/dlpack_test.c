#include "dlpack_test.h"
