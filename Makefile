# Everything that is built or downloaded goes to one directory, $(CACHE); see hack/env.sh.
SHELL := /bin/bash
.DEFAULT_GOAL := help
CACHE := $(or $(HUDI_OPERATOR_CACHE),$(HOME)/.cache/hudi-operator)
export PATH := $(CACHE)/venv/bin:$(CACHE)/bin:$(PATH)
export PYTHONPATH := $(CURDIR)/operator:$(CURDIR)/spark-images

.PHONY: help preflight deps up down status purge purge-cache images demo test test-all lint fmt site model alerts crashes chart manifests matrix values history faults faults-setup prove-stock-hudi paused-writers kills chaos mutations bench bench-lock bench-keys bench-etcd bench-launches bench-starvation bench-priority bench-commits certify

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

preflight: ## what this machine can run: the full tier (a node with pods) or the light one (the API only)
	@hack/setup/preflight

deps: ## install missing packages with apt
	@hack/setup/deps

up: deps ## start the embedded Kubernetes (first time: builds it, about 15 minutes on 2 cores; then 10 seconds)
	@hack/setup/preflight
	@hack/build/build-binaries
	@hack/cluster/cluster up

down: ## stop the embedded Kubernetes; the cache directory stays (make status says what else is left)
	@hack/cluster/cluster down

status: ## what of the embedded Kubernetes is there
	@hack/cluster/cluster status

images: deps ## build the images and hand them to the embedded Kubernetes when it is up
	@hack/build/build-binaries etcd versitygw
	@hack/images/build-images

demo: ; demo/run ## from nothing: one table, four writers, a conflict, a killed writer, every row checked

test: deps ## the tests of every change that this machine can run; of the Java, component, Spark and cluster tiers a slice (tests/run TIER...: only some tiers; docs/results/shown.md: what each shows)
	@tests/run

test-all: deps ## every test, also those that are too long for every change: hours; continues where it was cut off; writes docs/results/last-run.md and shown.md
	@tests/run --all

lint: ## ruff, mypy, import layers, format of Java
	@hack/setup/venv >/dev/null
	ruff check .
	ruff format --check .
	mypy
	lint-imports
	mvn -q -B -f spark-images/etcd-lock/pom.xml spotless:check

fmt: ## format Python and Java, and sort imports
	@hack/setup/venv >/dev/null
	ruff check --fix .
	ruff format .
	mvn -q -B -f spark-images/etcd-lock/pom.xml spotless:apply

site: ## the manual as a site in build/site; links and anchors are checked (SITE_SOURCE_URL=https://git.example.com/x/blob/main: where files of the repository are)
	@hack/site/site

model: ## search the protocol exhaustively, with the variants that must fail
	@tests/run model

faults-setup:
	@hack/setup/venv >/dev/null
	@hack/build/build-binaries etcd versitygw
	@hack/jars/fetch-jars
	@mvn -q -B -f spark-images/etcd-lock/pom.xml package -DskipTests

faults: faults-setup ## storage and process faults put to stock Hudi, to ours in LeaseOnly and to ours; continues where it was cut off; writes docs/results/faults.md
	@PYTHONPATH=$(PYTHONPATH):$(CURDIR) python -m tests.campaigns.faults

matrix: faults-setup ## RFC-22's test plan: table types x writers x tests 1-7 x storage, 84 cells, and two about new keys; continues where it was cut off (MATRIX="--only mor/disjoint"); writes docs/results/matrix.md
	@PYTHONPATH=$(PYTHONPATH):$(CURDIR) PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=python python -m tests.campaigns.matrix $(MATRIX)

values: faults-setup ## edge values of each type in each role, written, tended and read back (VALUES="--only payload"); writes docs/use/what-a-table-can-hold.md
	@PYTHONPATH=$(PYTHONPATH):$(CURDIR) PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=python python -m tests.campaigns.values $(VALUES)

history: faults-setup ## three writers read, decide and write at once, one is killed: lost updates, write skew, keys twice (HISTORY="--rounds 8"); writes docs/results/history.md
	@PYTHONPATH=$(PYTHONPATH):$(CURDIR) PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=python python -m tests.campaigns.history $(HISTORY)

kills: ## kill a writer of a real cluster 60 times while three others write; continues where it was cut off; writes docs/results/kills.md
	@hack/setup/venv >/dev/null
	@PYTHONPATH=$(PYTHONPATH):$(CURDIR) python -m tests.campaigns.kills

chaos: ## kill and freeze drivers, agents, operator, etcd and S3 of a real cluster while writers upsert the same keys (CHAOS="mor-default --minutes 5"); writes docs/results/chaos.md
	@hack/setup/venv >/dev/null
	@PYTHONPATH=$(PYTHONPATH):$(CURDIR) python -m tests.campaigns.chaos $(CHAOS)

prove-stock-hudi: faults-setup ## a paused writer corrupts a table with stock Hudi and ZooKeeper, and does not with ours; keeps the result for docs/results/faults.md
	@PYTHONPATH=$(PYTHONPATH):$(CURDIR) python -m tests.campaigns.faults.prove

paused-writers: faults-setup ## the runs and the search behind docs/design/paused-writers.md: what a pause does to a lock with a lease, and to ours; continues where it was cut off
	@PYTHONPATH=$(PYTHONPATH):$(CURDIR) python -m tests.campaigns.faults paused-writer publication-on-the-wire client-times-out after-the-drain
	@tests/run model

bench: faults-setup ## performance: launches beside kubeflow/spark-operator by turns, a crash in the middle; 50 and 300 writers, at rest and as they end; a look beside up to 10,000; commits of ten rows beside stock Hudi; about 40 minutes on a quiet machine; continues; writes docs/results/performance.md
	@hack/build/build-binaries kube kubectl etcd spark-operator
	@PYTHONPATH=$(PYTHONPATH):$(CURDIR) PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=python python -m tests.campaigns.bench.side_by_side $(BENCH)
	@for writers in 50 300; do PYTHONPATH=$(PYTHONPATH):$(CURDIR) PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=python \
	  python -m tests.campaigns.bench.launches --keep --writers $$writers --tables $$writers || exit; done
	@PYTHONPATH=$(PYTHONPATH):$(CURDIR) PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=python python -m tests.campaigns.bench.looks --keep
	@PYTHONPATH=$(PYTHONPATH):$(CURDIR) PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=python python -m tests.campaigns.bench.commits
	@PYTHONPATH=$(PYTHONPATH):$(CURDIR) PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=python python -m tests.campaigns.bench.performance

bench-lock: faults-setup ## 1,000 writers on one etcd, 32 on ZooKeeper: waits, processor, database; lock cycles with the gateway and without; continues; writes docs/results/lock-*.md
	@PYTHONPATH=$(PYTHONPATH):$(CURDIR) python -m tests.campaigns.bench.lock_load
	@PYTHONPATH=$(PYTHONPATH):$(CURDIR) PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=python python -m tests.campaigns.bench.lock_gateway

bench-keys: faults-setup ## a million inserted keys compared with another million, and how long the lock is held; on a quiet machine; writes docs/results/raw/bench/insert-conflicts.json
	@PYTHONPATH=$(PYTHONPATH):$(CURDIR) python -m tests.campaigns.bench.insert_conflicts

bench-etcd: deps ## what a defragmentation of etcd costs its clients; on a quiet machine; writes docs/results/raw/bench/etcd-defragmentation.json
	@hack/build/build-binaries etcd
	@PYTHONPATH=$(PYTHONPATH):$(CURDIR) PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=python python -m tests.campaigns.bench.defragmentation

bench-launches: deps ## how many writers the operator starts in a minute, what each costs, and what many that run cost at rest (LAUNCHES="--writers 300 --tables 300"); prints JSON
	@hack/build/build-binaries kube kubectl
	@PYTHONPATH=$(PYTHONPATH):$(CURDIR) PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=python python -m tests.campaigns.bench.launches $(LAUNCHES)

bench-starvation: faults-setup ## healthy writers without processor time: how many would be fenced, per lease; writes docs/results/starvation.md
	@PYTHONPATH=$(PYTHONPATH):$(CURDIR) python -m tests.campaigns.bench.starvation

bench-priority: faults-setup ## how long small, important commits take, alone and beside a long backfill; writes docs/results/priority.md
	@PYTHONPATH=$(PYTHONPATH):$(CURDIR) PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=python python -m tests.campaigns.bench.priority

bench-commits: faults-setup ## what a commit of ten rows costs, ours and stock Hudi's: requests, calls of etcd, Spark jobs, seconds, processor time; ten minutes on a quiet machine; writes docs/results/raw/bench/commits.json
	@PYTHONPATH=$(PYTHONPATH):$(CURDIR) PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=python python -m tests.campaigns.bench.commits

alerts: ## each alert on a cluster in which its fault was made, with the commands of its runbook; ten minutes; continues where it was cut off (ALERTS="--only 'HudiTable.*'"); writes docs/results/alerts.md
	@hack/setup/deps all
	@hack/setup/venv >/dev/null
	@hack/build/build-binaries kube kubectl etcd helm versitygw
	@PYTHONPATH=$(PYTHONPATH):$(CURDIR) PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=python python -m tests.campaigns.alerts $(ALERTS)

crashes: faults-setup ## every write of the operator x every way it can go wrong; continues where it was interrupted (CRASHES="--workers 4 --minutes 30")
	@hack/build/build-binaries kube kubectl
	@PYTHONPATH=$(PYTHONPATH):$(CURDIR) PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=python python -m tests.campaigns.crashes $(CRASHES)

certify: ## the tests that decide about a version of Hudi or Spark, with the jars of that version (HUDI=1.2.1 SPARK=3.5.9; default: as pinned; CERTIFY="--only lock"); hours; continues where it was cut off; writes docs/results/certify.md
	@hack/setup/venv >/dev/null
	@PYTHONPATH=$(PYTHONPATH):$(CURDIR) PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=python python -m tests.campaigns.certify --hudi="$(HUDI)" --spark="$(SPARK)" $(CERTIFY)

mutations: ## take the protocol's rules out of the code, one at a time: do tests notice? (MUTATIONS="--only I4"); writes docs/results/mutations.md
	@hack/setup/venv >/dev/null
	@hack/build/build-binaries etcd
	@PYTHONPATH=$(PYTHONPATH):$(CURDIR) PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=python python -m tests.campaigns.mutations $(MUTATIONS)

chart: ## copy the CRDs into the chart, and their bounds of a status into the operator
	mkdir -p charts/hudi-operator/files/crds
	cp crds/*.yaml charts/hudi-operator/files/crds/
	@hack/setup/venv >/dev/null
	python hack/crds/statuses.py

manifests: ## make deploy/ and bundle/ from the chart
	@hack/build/build-binaries helm
	@hack/setup/venv >/dev/null
	python -m hack.manifests.make
	python -m hack.bundle.make

purge: ## stop the embedded Kubernetes and remove its images and logs
	@hack/cluster/cluster purge

purge-cache: purge ## remove the whole cache directory: binaries, images, jars, Python environment
	rm -rf $(CACHE)
