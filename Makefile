# `make demo` and `make test` do all of their own set-up on a fresh Debian 12 machine with Swift 6.3.

# What is shipped: the static Swift library; optimised across modules, which takes a quarter off the CPU per push; without
# the exclusivity checks that debug builds and tests run with, another tenth; with jemalloc for malloc, a seventh less than
# with tcmalloc, which chains free blocks through themselves, so that taking one waits for memory out of the caches.
# Not in Package.swift, since a package with such flags cannot be a dependency, and the APNs library is to be one.
RELEASE = -c release --static-swift-stdlib -Xswiftc -cross-module-optimization -Xswiftc -enforce-exclusivity=unchecked \
	-Xlinker -ljemalloc

.PHONY: help demo test test-newer-kafka test-cluster test-address test-thread fuzz bench cost cost-trained build release release-trained lint clean packages \
	simulation simulation-short simulation-trained simulation-mutations chaos chaos-short chaos-upgrade chaos-test api-check docs-test docc pictures examples k8s-test monitoring-test alerts-test deb deb-test image-test

help: ## lists the targets
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

packages:
	@deploy/check-swift
	@deploy/install-packages

demo: packages ## the whole path on this machine: broker, Redis, APNs simulator and worker play a small world
	swift build --product carillon
	.build/debug/carillon demo $(ARGS)

# So many tests at once: most of them wait for servers of their own, and all at once they would wait for the processor.
test: packages ## all tests, against real servers on free ports; those that start a worker or a command take BINARY=
	swift build --build-tests
	$(if $(BINARY),CARILLON_BINARY=$(abspath $(BINARY)) )SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH=24 deploy/run-tests $(ARGS)

# Debian's is 2.0.2. What newer ones alone give, such as cooperative groups and KIP-848, is tried only here.
test-newer-kafka: packages ## Kafka's tests and parts of the whole path with a newer librdkafka than Debian's
	swift build --build-tests
	export LD_LIBRARY_PATH="$$(deploy/newer-librdkafka)" && .build/debug/carillon --version && deploy/run-tests \
		$(or $(ARGS),--filter '^KafkaTests\.' --filter KafkaFaultTests --filter KillTests --filter OlderDataTests --filter DemoWorldTests)

test-cluster: export CARILLON_TEST_REDIS = cluster
test-cluster: packages ## parts of the whole path on a Redis Cluster of six nodes
	swift build --build-tests
	SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH=4 deploy/run-tests $(or $(ARGS),--filter OneWorld --filter RedisClusterTests \
		--filter OneNodeClusterTests --filter KillTests --filter KafkaFaultTests --filter ReloadTests --filter DemoWorldTests)

test-address: packages ## the tests under the address sanitizer
	swift build --build-tests --sanitize=address --scratch-path .build/address
	LSAN_OPTIONS=suppressions=$(CURDIR)/Tests/Sanitizers/leaks.supp:print_suppressions=0 \
		swift test --skip-build --disable-xctest --sanitize=address --scratch-path .build/address $(ARGS)

# librdkafka's C11 threads are made visible to the sanitizer: see Tests/Sanitizers/c11threads.c.
test-thread: packages ## the tests under the thread sanitizer
	swift build --build-tests --sanitize=thread --scratch-path .build/thread
	clang -O1 -Wall -Werror -shared -fPIC -o .build/thread/c11threads.so Tests/Sanitizers/c11threads.c
	LD_PRELOAD=$(CURDIR)/.build/thread/c11threads.so TSAN_OPTIONS=suppressions=$(CURDIR)/Tests/Sanitizers/thread.supp \
		swift test --skip-build --disable-xctest --sanitize=thread --scratch-path .build/thread $(ARGS)

api-check: packages ## what breaks the users of the libraries since a commit: BASE=v1.0.0
	deploy/api-check $(BASE)

# Each target for so many seconds; what it learns is kept in .build/fuzz/corpus, what fails in .build/fuzz/found. SwiftPM
# knows one sanitizer at a time, so the compiler is told of both. Sockets and servers have no part in it.
FUZZ_SECONDS = 60
FUZZ_TARGETS = answers session client replies records state decisions configuration requests scenarios zones headers \
	recordings
# Where size matters inputs grow to 1 MB, slowly: what is found in a small one is found sooner.
FUZZ_LONG = replies records state decisions configuration scenarios headers recordings
fuzz: export CARILLON_FUZZ = 1
fuzz: export SWIFT_BACKTRACE = enable=no
# OpenSSL allocates much in each run of the client.
fuzz: export ASAN_OPTIONS = quarantine_size_mb=32:max_malloc_fill_size=0:malloc_context_size=4
fuzz: packages ## libFuzzer on the readers of outside bytes: FUZZ_SECONDS=60, FUZZ_TARGETS="client replies", ARGS
	swift build --product fuzz --scratch-path .build/fuzz --sanitize=fuzzer -Xswiftc -sanitize=fuzzer,address
	@set -e; for target in $(FUZZ_TARGETS); do \
		mkdir -p .build/fuzz/corpus/$$target .build/fuzz/found/$$target; \
		echo "== $$target, $(FUZZ_SECONDS) s"; \
		CARILLON_FUZZ_TARGET=$$target .build/fuzz/debug/fuzz -max_total_time=$(FUZZ_SECONDS) -timeout=10 \
			-max_len=$$(case " $(FUZZ_LONG) " in *" $$target "*) echo 1000000;; *) echo 2048;; esac) \
			-print_final_stats=1 -artifact_prefix=.build/fuzz/found/$$target/ $(ARGS) \
			.build/fuzz/corpus/$$target Tests/Corpus/$$target </dev/null; \
	done

# docs/simulation.md. FAULTS=crash,redisLink plans these only.
simulation: SEEDS = 300
simulation: packages ## the whole fleet in one thread and virtual time: SEEDS=300, FIRST=1, FAULTS=crash, ARGS="--log --shrink"
	swift build -c release --product simulation --scratch-path .build/simulation
	.build/simulation/release/simulation --seeds $(SEEDS) --first $(FIRST) $(if $(FAULTS),--faults $(FAULTS)) $(ARGS)

# With the debug build that the tests need anyway: an optimised build takes longer than these seeds.
simulation-short: SEEDS = 300
simulation-short: packages ## 300 seeds by a debug build, in two processes; whether all defects for simulation-mutations apply
	python3 Tests/Mutations/mutations.py --check
	swift build --product simulation
	@half=$$(($(SEEDS) / 2)); .build/debug/simulation --first $(FIRST) --seeds $$half & one=$$!; \
	.build/debug/simulation --first $$(($(FIRST) + half)) --seeds $$(($(SEEDS) - half)); two=$$?; wait $$one && exit $$two

# All but the models and the scheduler are the object files of the shipped binary.
simulation-trained: SEEDS = 2000
simulation-trained: packages ## the same with the parts of the trained binary, which it builds too: SEEDS=2000, FIRST=1, BINARY=
	$(if $(BINARY),,deploy/build-trained --simulation $(RELEASE))
	$(or $(BINARY),.build/trained/release/simulation) --seeds $(SEEDS) --first $(FIRST) $(ARGS)

simulation-mutations: packages ## the first seed that finds each of all defects: ARGS="--only late-reply --seeds 200"
	python3 Tests/Mutations/mutations.py $(ARGS)

# docs/chaos.md. Python's part is installed from PyPI into a virtual environment of its own.
SEEDS = 1
FIRST = 1
FAULT = all
REDIS = single
CHAOS_PYTHON = .build/chaos-venv/bin/python
$(CHAOS_PYTHON): chaos/requirements.txt
	@deploy/install-packages python3-venv
	python3 -m venv .build/chaos-venv
	$(CHAOS_PYTHON) -m pip install --quiet --disable-pip-version-check -r chaos/requirements.txt
	@touch $(CHAOS_PYTHON)

chaos: packages $(CHAOS_PYTHON) ## seeded traffic and faults with a checker: SEEDS=5, FIRST=1, FAULT=kill,redis-full, REDIS=cluster, BREAK=no-dedup, BINARY=, ARGS
	$(if $(BINARY),,swift build --product carillon)
	$(CHAOS_PYTHON) -m chaos run --seeds $(SEEDS) --first $(FIRST) --fault $(FAULT) --redis $(REDIS) \
		$(if $(BINARY),--binary $(BINARY)) $(if $(BREAK),--break $(BREAK)) $(ARGS)

chaos-short: packages $(CHAOS_PYTHON) ## three short seeds of it
	swift build --product carillon
	$(CHAOS_PYTHON) -m chaos run --seeds 3 --fault redis-kill,apns-503,kill --seconds 10 --session-s 4 --setup-s 8 \
		--quiet-s 30 $(ARGS)

# docs/chaos.md, "Two versions".
chaos-upgrade: SEEDS = 9
chaos-upgrade: packages $(CHAOS_PYTHON) $(if $(BINARY),,release) ## workers of an earlier commit and of this tree in one group, to and fro: BASE=v1.0.0, SEEDS=9, FAULT=mixed, COUNTED=503+downgrade, BASE_BINARY=, BINARY=, ARGS
	base=$(or $(BASE_BINARY),$$(deploy/build-commit $(BASE))) && $(CHAOS_PYTHON) -m chaos run --base $$base \
		--binary $(or $(BINARY),.build/release/carillon) --seeds $(SEEDS) --first $(FIRST) --fault $(FAULT) --redis $(REDIS) \
		--seconds 60 $(if $(COUNTED),--counted $(COUNTED)) $(ARGS)

chaos-test: $(CHAOS_PYTHON) ## the checker's own tests, and its lint
	$(CHAOS_PYTHON) -m ruff check chaos
	$(CHAOS_PYTHON) -m ruff format --check chaos
	$(CHAOS_PYTHON) -m pytest -q chaos/tests

# CONTRIBUTING.md, "Deployment files". Python's part is installed from PyPI into a virtual environment of its own.
DEPLOY_PYTHON = .build/deploy-venv/bin/python
$(DEPLOY_PYTHON): deploy/requirements.txt chaos/requirements.txt
	@deploy/install-packages python3-venv
	python3 -m venv .build/deploy-venv
	$(DEPLOY_PYTHON) -m pip install --quiet --disable-pip-version-check -r deploy/requirements.txt
	@touch $(DEPLOY_PYTHON)

monitoring-test: $(DEPLOY_PYTHON) ## alert rules by promtool, dashboard and runbooks against the workers' metrics
	@deploy/install-packages prometheus
	$(DEPLOY_PYTHON) -m ruff check deploy
	$(DEPLOY_PYTHON) -m ruff format --check deploy
	$(DEPLOY_PYTHON) -m pytest -q deploy/tests/test_monitoring.py deploy/tests/test_plain_words.py

# BINARY= names one that is built already, here and below.
alerts-test: packages $(DEPLOY_PYTHON) ## every alert fires by its fault and ends after it: a real Prometheus scrapes a worker (ten minutes)
	@deploy/install-packages prometheus
	$(if $(BINARY),,swift build --product carillon)
	$(DEPLOY_PYTHON) -m deploy.monitoring.drill --binary $(or $(BINARY),.build/debug/carillon) $(ARGS)

examples: packages ## the examples in Swift, as separate packages
	swift build --package-path Examples/apns-send --scratch-path .build/examples -Xswiftc -warnings-as-errors

docc: packages ## the documentation of the library APNs, into .build/docc
	docs/docc

# docs/contract and Examples. BINARY= names one that is built already.
docs-test: examples docc $(DEPLOY_PYTHON) ## schemas, AsyncAPI, migration examples, the operator's page, examples, DocC, generated pages and the path of a push, against a running worker
	@deploy/install-packages chromium chromium-driver valgrind binutils
	$(if $(BINARY),,swift build --product carillon && swift build --product push-cost)
	$(DEPLOY_PYTHON) -m ruff check docs Examples
	$(DEPLOY_PYTHON) -m ruff format --check docs Examples
	CARILLON_BINARY=$(or $(BINARY),.build/debug/carillon) $(DEPLOY_PYTHON) -m pytest -q docs/tests

pictures: packages $(DEPLOY_PYTHON) ## draws docs/pictures: the operator's page and carillon top (four minutes)
	@deploy/install-packages chromium chromium-driver pngquant
	$(if $(BINARY),,swift build --product carillon)
	CARILLON_BINARY=$(or $(BINARY),.build/debug/carillon) $(DEPLOY_PYTHON) -m docs.pictures

KUBERNETES_TOOLS = .build/kubernetes-tools/helm
$(KUBERNETES_TOOLS): deploy/kubernetes/tools.py | $(DEPLOY_PYTHON)
	$(DEPLOY_PYTHON) -m deploy.kubernetes.tools $(@D)

k8s-test: $(DEPLOY_PYTHON) $(KUBERNETES_TOOLS) ## the Kubernetes manifests and the Helm chart rendered, each against its schema; versions and bill of materials
	$(DEPLOY_PYTHON) -m pytest -q deploy/tests/test_kubernetes.py deploy/tests/test_helm.py deploy/tests/test_package.py

deb: $(if $(BINARY),,release-trained) ## a Debian package with its bill of materials, in .build/deb
	@deploy/install-packages debhelper dpkg-dev
	deploy/build-deb $(BINARY)

deb-test: ## the package in a fresh Debian: installed, tested, upgraded, removed (as root)
	@deploy/install-packages lintian mmdebstrap
	deploy/test-deb

# A debug build, linked as the shipped binary is: the image has no other libraries.
image-test: packages ## the image of deploy/Dockerfile, built without a daemon and run read-only as nobody, with a push through it (as root): BINARY=
	@deploy/install-packages buildah podman runc mmdebstrap openssl python3
	$(if $(BINARY),,archives=$$(deploy/link-archives) && PKG_CONFIG_PATH=$$archives/pkgconfig swift build --product carillon \
		--scratch-path .build/image --static-swift-stdlib -Xlinker -ljemalloc -Xlinker -llz4 -Xlinker -lsasl2 -Xlinker -lz -Xlinker -lzstd \
		&& cp $$archives/packages .build/image/debug/carillon.packages)
	deploy/test-image $(or $(BINARY),.build/image/debug/carillon)

bench: release ## CPU per push, latency and memory, with h2load in the same run
	.build/release/carillon bench $(ARGS)

# deploy/cost.json has the last figures: ARGS=--write replaces them. ARGS="1:1 muted" counts these only, BINARY= another's.
cost: packages ## instructions, taken branches, cache misses, allocations and copies of a push by callgrind, against the last figures
	@deploy/install-packages valgrind binutils
	$(if $(BINARY),,swift build $(RELEASE) --product push-cost)
	python3 deploy/cost.py $(if $(BINARY),--binary $(BINARY)) $(ARGS)

cost-trained: packages ## the same of a binary that is trained like the shipped one, which it builds too
	@deploy/install-packages valgrind binutils
	$(if $(BINARY),,deploy/build-trained --cost $(RELEASE))
	python3 deploy/cost.py --trained $(if $(BINARY),--binary $(BINARY)) $(ARGS)

build: packages ## a debug build
	swift build

# For `--version`. A debug build has neither, so that a commit does not link it again.
release release-trained simulation-trained: export CARILLON_COMMIT ?= $(shell git describe --always --abbrev=12 --exclude='*' --dirty 2>/dev/null)
release release-trained simulation-trained: export CARILLON_DATE ?= $(shell git log -1 --format=%cs 2>/dev/null)
release: packages ## an optimised binary, in .build/release
	swift build $(RELEASE) --product carillon

# Two builds, each trained by a bench: the compiler moves rare code away from the code of a push, BOLT orders the blocks and
# functions of a push so that it jumps less.
release-trained: packages ## the shipped binary: trained twice by a bench, in .build/trained/release (three times as long)
	deploy/build-trained $(RELEASE)

lint: ## the formatter's remarks, none allowed, and the checks of plain words and of licence lines
	swift format lint --strict --recursive Package.swift Sources Tests Examples
	@command -v python3 >/dev/null || deploy/install-packages python3
	python3 deploy/plain_words.py
	@! git ls-files '*.swift' '*.py' '*.c' '*.h' | xargs grep -L SPDX-License-Identifier | sed 's/$$/: no SPDX line/' | grep .
	@! git grep -nE -A1 '/// - Parameters:' -- '*.swift' | grep -E '/// - [a-z]' | sed 's/$$/  (parameters of a list stand two columns deeper)/' | grep .

clean:
	rm -rf .build
