// SPDX-License-Identifier: GPL-2.0
/* See test_util.h. */
#include "test/util/test_util.h"
