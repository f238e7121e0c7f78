# SPDX-License-Identifier: GPL-2.0
# How C is compiled in tools/. A Makefile sets `tools`, the path of tools/ from its own
# folder, and includes this.
#
# Includes are spelled from tools/ on ("common/log.h"). The objects of any folder of tools/
# go to $(obj)/FOLDER/ of the Makefile that wants them, so that programs can be built with
# different flags, and at the same time.

CFLAGS     ?= -O2 -g
CXXFLAGS   ?= $(CFLAGS)
PKG_CONFIG ?= pkg-config
obj        ?= .obj

own_cflags := -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -MMD -MP -I$(tools) \
	      -I$(tools)/../kmod/uapi

own_cxxflags := -std=c++17 -Wall -Wextra -Werror -MMD -MP -I$(tools)

# What --version tells, where that is more than common/version.h says.
ifdef version
own_cflags += -DTWHEEL_VERSION='"$(version)"'
endif

# $(call objects,FOLDER...): those of all *.c and *.cc of these folders.
objects = $(foreach folder,$(1),$(patsubst $(tools)/%,$(obj)/%.o,$(basename $(wildcard \
	  $(tools)/$(folder)/*.c $(tools)/$(folder)/*.cc))))

# $(call libraries,NAME...): how to link with them, also where pkg-config does not know.
libraries = $(foreach name,$(1),$(shell $(PKG_CONFIG) --libs $(name) 2>/dev/null || \
	    echo -l$(patsubst lib%,%,$(name))))

# $(call missing,HEADER...): those that the compiler does not find.
missing = $(strip $(foreach header,$(1),$(shell printf '\043include <%s>\n' $(header) | \
	  $(CC) $(CPPFLAGS) -E -o /dev/null - 2>/dev/null || echo $(header))))

# What "wake me" takes: the alarms, the library, and the wheel of the kernel module.
alarm_objects = $(call objects,alarm lib) $(obj)/kmod/wheel.o $(obj)/kmod/wheels.o

$(obj)/alarm/process.o: own_cflags += -I$(tools)/alarm/shim
$(obj)/kmod/%.o: own_cflags := -std=gnu11 -Wall -Wextra -Werror -MMD -MP -I$(tools)/alarm/shim

# The page for people: its files are in the program as they are.
$(obj)/metrics/files.o: own_cflags += -Wa,-I$(tools)/metrics/page
$(obj)/metrics/files.o: $(wildcard $(tools)/metrics/page/page.*)

$(obj)/%.o: $(tools)/%.c
	@mkdir -p $(@D)
	$(CC) $(own_cflags) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

$(obj)/%.o: $(tools)/%.cc
	@mkdir -p $(@D)
	$(CXX) $(own_cxxflags) $(CPPFLAGS) $(CXXFLAGS) -fno-rtti -fno-sanitize=vptr -c -o $@ $<

$(obj)/kmod/%.o: $(tools)/../kmod/%.c
	@mkdir -p $(@D)
	$(CC) $(own_cflags) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

# Files of different folders may have the same name: so members are appended (q).
$(obj)/%.a:
	rm -f $@
	$(AR) qcs $@ $^

-include $(shell find $(obj) -name '*.d' 2>/dev/null)
