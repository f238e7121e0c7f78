# SPDX-License-Identifier: GPL-2.0
# Tests in C of the houses of tools/: every *_test.c of a folder is a program that prints
# TAP, with the harness of the device tests. What tests share is in *_lib.c. A fake_*.c
# stands in for a part of the product: it is linked into the programs that name its object
# as a prerequisite, and these get it in place of the part.
#
#	make		all of them
#	make check	build and run them
#
# A Makefile sets `tools`, `parts` (the objects of what it tests, which are built with the
# sanitizers, in its own $(obj)), `libs`, and `also`, the programs for which it has rules of
# its own; and includes this after build.mk.

CFLAGS := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all

own_cflags += -I$(tools)/test/device
here       := $(obj)/$(folder)
programs   := $(patsubst %.c,%,$(wildcard *_test.c))
shared     := $(patsubst $(tools)/%.c,$(obj)/%.o,$(wildcard $(tools)/$(folder)/*_lib.c))

$(programs): %: $(here)/%.o $(obj)/test/device/harness.o $(obj)/shared.a $(obj)/parts.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) \
		-Wl,--as-needed $(libs)

$(obj)/parts.a: $(parts)
$(obj)/shared.a: $(shared)

check: $(programs) $(also)
	for program in $(programs) $(also); do ./$$program || exit; done

.PHONY: all check clean
