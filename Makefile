# Short names for the commands in scripts/. CONTRIBUTING.md describes them.
.DEFAULT_GOAL := help
.PHONY: help demo test test-long build wheel bench lint format install test-install test-e2e clean

help:  ## print this text
	@echo 'Gleaner: distributed training made faster with spare CPU cores and spare network bandwidth.'
	@echo
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo:  ## train a small network on this machine, with and without summers, and compare the times
	@scripts/bootstrap build
	@# Installs the demo's packages while Gleaner compiles.
	@scripts/bootstrap demo >build/demo-packages.log 2>&1 & installing=$$!; \
	  scripts/build gleaner gleaner-summer gleaner_shared; built=$$?; \
	  wait $$installing; installed=$$?; cat build/demo-packages.log; exit $$((built | installed))
	@scripts/demo

test:  ## the check: format, the release build, unit tests, simulation, Python, the chart; 10 minutes on 2 cores
	@scripts/test

test-long:  ## run all tests, stage by stage; RESUME=1 skips stages that passed with these files
	@scripts/test --long $(if $(RESUME),--resume)

build:  ## build all programs and libgleaner.so into build/release
	@scripts/build

wheel:  ## build the Python wheel, with the programs and all libraries that they need, into dist
	@scripts/wheel

bench: build  ## measure how fast this machine sums and exchanges gradients
	@scripts/bench

lint:  ## run the static checks: clang-format, ruff, shellcheck, clang-tidy
	@scripts/test format tidy

format:  ## format the code in place
	@scripts/format

install: build  ## install into PREFIX (default /usr/local)
	@cmake --install build/release --prefix $${PREFIX:-/usr/local}

test-install:  ## run make demo in a bare Debian 12 chroot (needs root; downloads 500 MB)
	@tests/install/fresh_machine

test-e2e:  ## test jobs, faults and the chart in a Kubernetes cluster on this machine (needs root)
	@scripts/test e2e

clean:  ## remove the builds and the logs of tests
	@rm -rf build/release build/wheel build/asan build/tsan build/parent build/test-logs
