# The commands people type; each is a few lines over scripts/ and CMakePresets.json. CONTRIBUTING.md tells more.
.DEFAULT_GOAL := help
.PHONY: help demo test test-long build bench lint format install test-install test-e2e clean

help:  ## this text
	@echo 'Gleaner: distributed training with what the cluster leaves lying about.'
	@echo
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo:  ## train a small network on this machine through summers, and see what they bought
	@scripts/bootstrap demo
	@scripts/build gleaner gleaner-summer gleaner_shared
	@scripts/demo

test:  ## a share of every check: units, simulation, Python, the chart, a Kubernetes cluster, sanitizers, clang-tidy
	@scripts/test

test-long:  ## everything there is to check; make test is a share of it
	@scripts/test --long

build:  ## gleaner, gleaner-summer and libgleaner.so into build/release
	@scripts/build

bench: build  ## how fast this machine sums and exchanges
	@scripts/bench

lint:  ## the checks that read the code and do not run it
	@scripts/test format tidy

format:  ## lay out the code as the format check wants it
	@scripts/format

install: build  ## into PREFIX (default /usr/local)
	@cmake --install build/release --prefix $${PREFIX:-/usr/local}

test-install:  ## make demo in a bare Debian 12 chroot (root; downloads 500 MB)
	@tests/install/fresh_machine

test-e2e:  ## jobs, accidents and the chart on a real Kubernetes cluster of this machine (root; long the first time)
	@scripts/test e2e

clean:  ## what the build made
	@rm -rf build/release build/asan build/tsan build/test-logs
