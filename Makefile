# SPDX-License-Identifier: GPL-2.0
# twheel: `make help` lists the targets.

# Newest installed headers, where the running kernel has none.
RUNNING := /lib/modules/$(shell uname -r)/build
INSTALLED := $(shell ls -d /usr/src/linux-headers-*/Kconfig /lib/modules/*/build/Makefile 2>/dev/null | \
	xargs -r -n 1 dirname | while read -r dir; do \
		[ -e "$$dir/Module.symvers" ] && echo "$$dir"; done | sort -V | tail -n 1)
KDIR ?= $(if $(wildcard $(RUNNING)/Makefile),$(RUNNING),$(INSTALLED))

PROGRAMS := tools/lib tools/man tools/twheelctl tools/queue tools/examples tools/bench \
	    tools/test/device tools/test/wheel

all: modules tools

help:
	@echo 'make           build the modules for KDIR, and the tools'
	@echo 'make modules   build the modules for KDIR'
	@echo 'make tools     build the library, twheelctl, the examples and, where its libraries are, twheelq'
	@echo 'make deb       Debian packages, in .build/deb'
	@echo 'make install   the library, twheelctl and what goes with them, to prefix=/usr/local;'
	@echo '               make modules_install, the module; make uninstall, none of it any more'
	@echo 'make demo      a virtual machine, 100,000 events, and what became of them'
	@echo 'make demo-queue  twheelq: delays, retries, dead letters, and a crash in between'
	@echo 'make demo-relay  the same on Kafka: 10,000 messages, two relays, one of them killed'
	@echo 'make test      every test, in userspace and in virtual machines, or SUITES="..."'
	@echo 'make test-newcomer  demo and the quick tests in an empty Debian 12 and 13'
	@echo 'make check-style  checkpatch, kernel-doc and shellcheck on all code'
	@echo 'make bench     every benchmark, beside what else there is, and which targets are reached'
	@echo 'make bench-queue  twheelq beside beanstalkd, and which targets are reached'
	@echo 'make setup     get packages and kernels for demo and test (they do it too)'
	@echo 'make clean     remove what was built'
	@echo
	@echo 'KDIR           kernel to build for: $(or $(KDIR),none is installed)'

modules:
	@[ -n "$(KDIR)" ] || { \
		echo 'No kernel headers are installed. Get them: apt-get install linux-headers-amd64' >&2; \
		exit 1; }
	@[ "$(KDIR)" = "$(RUNNING)" ] || echo 'building for $(KDIR)'
	$(MAKE) -C $(KDIR) M=$(CURDIR) modules

tools:
	$(MAKE) -C tools/lib
	$(MAKE) -C tools/twheelctl
	$(MAKE) -C tools/examples
	$(MAKE) -C tools/queue optional

deb:
	tools/vm/setup deb
	tools/package/build

install uninstall modules_install:
	$(MAKE) -C tools/package $@ KDIR=$(KDIR)

setup:
	tools/vm/setup

demo:
	tools/vm/setup host queue 6.1
	tools/test/demo

demo-queue:
	tools/vm/setup queue
	$(MAKE) -C tools/queue
	tools/queue/demo

demo-relay:
	tools/vm/setup queue
	$(MAKE) -C tools/queue
	$(MAKE) -C tools/queue/test mock_cluster delay_records
	tools/queue/demo_relay

bench:
	tools/vm/setup bench 6.1 uml
	tools/bench/run

bench-queue:
	tools/queue/bench/run

test:
	tools/vm/setup
	tools/test/run $(SUITES)

test-newcomer:
	tools/test/newcomer

check-style:
	tools/test/style

clean:
	for dir in $(PROGRAMS); do $(MAKE) -C $$dir clean; done
	find kmod kunit \( -name '*.o' -o -name '*.ko' -o -name '*.mod' -o -name '*.mod.c' \
		-o -name '.*.cmd' -o -name '.*.o.d' -o -name modules.order -o -name Module.symvers \) -delete
	rm -rf .build .tmp_versions modules.order Module.symvers .*.cmd

.PHONY: all help modules tools deb install uninstall modules_install setup demo demo-queue \
	demo-relay bench bench-queue test test-newcomer check-style clean
