# SPDX-License-Identifier: GPL-2.0
# twheel: `make help` lists the targets.

# Newest installed headers, where the running kernel has none.
RUNNING := /lib/modules/$(shell uname -r)/build
INSTALLED := $(shell ls -d /usr/src/linux-headers-*/Kconfig /lib/modules/*/build/Makefile 2>/dev/null | \
	xargs -r -n 1 dirname | while read -r dir; do \
		[ -e "$$dir/Module.symvers" ] && echo "$$dir"; done | sort -V | tail -n 1)
KDIR ?= $(if $(wildcard $(RUNNING)/Makefile),$(RUNNING),$(INSTALLED))

# What make builds where the machine has what it takes: tools/package/needs knows.
PARTS := lib twheelctl examples example-uring queue relay
NEEDS := CC='$(CC)' CXX='$(CXX)' CPPFLAGS='$(CPPFLAGS)' KDIR='$(KDIR)' tools/package/needs

PROGRAMS := tools/lib tools/man tools/twheelctl tools/queue tools/relay tools/alarm/test \
	    tools/common/test tools/metrics/test \
	    tools/examples tools/bench tools/wheelview \
	    tools/test/device tools/test/faults tools/test/fuzzing tools/test/tormentor tools/test/wheel

# $(call build,PART...): build those that can be built here. What is missing for the others
# is said first, and once more in a line at the end, behind what compilers print.
define build
+@parts=$$($(NEEDS) $(1)); [ -z "$$parts" ] || $(MAKE) $$parts
@$(NEEDS) --summary $(1) >/dev/null
endef

all:
	$(call build,$(PARTS) modules)

help:
	@echo 'make           build the module for KDIR, and the tools, as far as the machine has'
	@echo '               what they take; it lists the packages that are missing for the rest'
	@echo 'make modules   build the module for KDIR'
	@echo 'make tools     build the library, twheelctl, the examples,'
	@echo '               twheelq and twheel-relay'
	@echo 'make deb       Debian packages, in .build/deb'
	@echo 'make image     images of twheelq and twheel-relay for containers, in .build/image'
	@echo 'make install   the library, twheelctl and what goes with them, to prefix=/usr/local;'
	@echo '               make modules_install, the module; make uninstall, none of it any more'
	@echo 'make demo      a virtual machine, 100,000 events, and what became of them'
	@echo 'make demo-queue  twheelq: delays, retries, dead letters, and a crash in between'
	@echo 'make demo-relay  the same on Kafka: 10,000 messages, two relays, one of them killed'
	@echo 'make test      tests, in userspace and in virtual machines: some thirty minutes. Or SUITES="..."'
	@echo '               SUITES=quick takes some ten minutes; tools/test/run has the names'
	@echo 'make test-kernels  whole, on each kernel, what "make test" does there in short'
	@echo 'make torture   all of the module at random, on machines that are disturbed, DURATION=60 s each'
	@echo 'make fuzz      libFuzzer on the wheel, ioctls, the queue and the relay, DURATION=300 s each;'
	@echo '               and CALLS=10000000 of the device, guided by kcov'
	@echo 'make simulate  a month of mixed load and a year of few events, in virtual time'
	@echo 'make coverage  how many lines of the module, twheelq and twheel-relay the tests run'
	@echo 'make mutate    puts 200 small faults into the code: do the tests notice? ARGS=--help'
	@echo 'make test-newcomer  the commands of README.md, in an empty Debian 12 and 13'
	@echo 'make check-style  checkpatch, kernel-doc and shellcheck on all code'
	@echo 'make bench     every benchmark, beside what else there is, and which targets are reached;'
	@echo '               ARGS=--quick, fewer of everything: does it work?'
	@echo 'make bench-queue  twheelq beside beanstalkd, and which targets are reached'
	@echo 'make bench-relay  twheel-relay beside Kafka Streams, on three brokers; the same'
	@echo 'make screenshots  draw the recordings of the README anew, from real runs'
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
	$(call build,$(PARTS))

lib twheelctl queue relay:
	$(MAKE) -C tools/$@

examples:
	$(MAKE) -C tools/examples without-uring

example-uring:
	$(MAKE) -C tools/examples uring

# They would build libtwheel.a where there is none, two at a time.
examples example-uring: lib

deb:
	tools/vm/setup deb
	tools/package/build

image:
	tools/vm/setup deb image
	tools/package/image/build

install uninstall modules_install:
	$(MAKE) -C tools/package $@ KDIR=$(KDIR)

setup:
	tools/vm/setup

# One line for each step that prints a lot; .build/demo.log has the rest.
STEP := @tools/test/step .build/demo.log

demo:
	@tools/test/demo

demo-queue:
	$(STEP) 'installing Debian packages' tools/vm/setup queue
	$(STEP) 'building twheelq' $(MAKE) -C tools/queue
	@tools/queue/demo

demo-relay:
	$(STEP) 'installing Debian packages' tools/vm/setup queue
	$(STEP) 'building twheel-relay' $(MAKE) -C tools/relay
	$(STEP) 'building a mock Kafka cluster' \
		$(MAKE) -C tools/relay/test mock_cluster delay_records
	@tools/relay/demo

bench:
	tools/vm/setup bench peers 6.1 uml
	tools/vm/setup kafka || [ $$? = 77 ]
	tools/bench/run $(ARGS)

screenshots:
	tools/vm/setup host queue 6.1
	$(MAKE) tools
	tools/screenshots/record

bench-queue:
	tools/queue/bench/run

bench-relay:
	tools/vm/setup queue-test kafka
	tools/relay/bench/run $(ARGS)

test:
	tools/vm/setup
	tools/test/run $(SUITES)

test-kernels:
	tools/vm/setup
	tools/vm/setup others || [ $$? = 77 ]
	tools/test/run kernels

torture:
	tools/vm/setup host 6.1 debug
	tools/vm/setup uml-7.2-smp || [ $$? = 77 ]
	tools/test/torture --seconds $(or $(DURATION),60)

fuzz:
	tools/vm/setup host queue debug
	tools/vm/setup uml-7.2-kasan || [ $$? = 77 ]
	tools/test/fuzz --seconds $(or $(DURATION),300) --calls $(or $(CALLS),10000000) \
		--device-seconds $(or $(DURATION),300) wheel queue relay command device native

simulate:
	tools/vm/setup host 6.1 uml-travel
	tools/test/simulate --whole

coverage:
	tools/vm/setup host queue-test debug
	tools/vm/setup kafka || [ $$? = 77 ]
	tools/test/coverage

mutate:
	tools/vm/setup host queue-test 6.1 debug
	tools/vm/setup uml-7.2-kasan
	tools/test/mutate $(ARGS)

test-newcomer:
	tools/test/newcomer

check-style:
	tools/test/style

clean:
	for dir in $(PROGRAMS); do $(MAKE) -C $$dir clean; done
	find kmod kunit \( -name '*.o' -o -name '*.ko' -o -name '*.mod' -o -name '*.mod.c' \
		-o -name '.*.cmd' -o -name '.*.o.d' -o -name modules.order -o -name Module.symvers \) -delete
	rm -rf .build .tmp_versions modules.order Module.symvers .*.cmd

.PHONY: all help modules tools lib twheelctl queue relay examples example-uring deb image install \
	uninstall modules_install setup demo demo-queue \
	demo-relay bench screenshots bench-queue bench-relay test test-kernels torture fuzz simulate \
	coverage mutate test-newcomer check-style clean
