# make test     builds once (debug) and runs every test
# make demo     the whole story in a minute, on a temporary server and two devices
# make bench    measures against the budgets of docs/benchmarks.md, on a release build
# make load     puts many devices with faults on one server for ten minutes
# make format   formats all Swift files; make lint only looks
# make install  installs the command line tool below PREFIX (/usr/local)

SWIFT ?= swift
PREFIX ?= /usr/local
DESTDIR ?=
RELEASE = .build/release/cairn
STATIC = $(if $(filter Linux,$(shell uname)),--static-swift-stdlib)
FOLDERS = Package.swift Sources Tests Benchmarks Examples

.PHONY: test demo bench load format lint install release client-only clean packages build-packages

# The system libraries, only what is missing.
packages:
	scripts/bootstrap < /dev/null

build-packages:
	scripts/bootstrap --build < /dev/null

test: packages
	scripts/with-memory-tmp $(SWIFT) test --disable-xctest < /dev/null

# Needs no Swift runtime on the machine where it runs.
release: build-packages
	$(SWIFT) build -c release --product cairn $(STATIC) < /dev/null

demo: release
	$(RELEASE) demo

bench: release
	$(SWIFT) build -c release --product CairnTiming $(STATIC) < /dev/null
	scripts/bench $(RELEASE)

load: release
	$(SWIFT) build -c release --product CairnLoad $(STATIC) < /dev/null
	scripts/load $(RELEASE)

format:
	$(SWIFT) format --in-place --parallel --recursive $(FOLDERS)

lint:
	$(SWIFT) format lint --strict --parallel --recursive $(FOLDERS)

install: release
	install -d "$(DESTDIR)$(PREFIX)/bin"
	install -s -m 755 $(RELEASE) "$(DESTDIR)$(PREFIX)/bin/cairn"

# An app that depends on the library never needs the server's libraries.
client-only:
	scripts/check-client-only

clean:
	rm -rf .build
