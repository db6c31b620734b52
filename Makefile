# The developer's commands are CI's commands.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# SGLang with torch; in it `worker`, the worker's own environment with SGLang's behind it, as in the image.
ENGINE := .venv-engine
# Test processes: half of the time they wait for servers, so more than there are cores.
WORKERS ?= 3
LOCKS := requirements/image.txt requirements/base.txt requirements/demo.txt
SHELL_FILES = $(shell grep -lE '^\#!.*bash' start.sh .ci/run scripts/*)

.PHONY: help demo test fuzz lint format docs lock clean test-chaos test-chaos-short test-engine test-image bench bench-quick bench-plots bench-boot boot-image deploy smoke-endpoint rollback check-models audit sbom

help: ## This list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

$(VENV)/.demo: requirements/demo.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r $<
	@touch $@

$(VENV)/.test: requirements/test.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r $<
	@touch $@ $(VENV)/.demo

demo: $(VENV)/.demo ## Two documents through the real job path, on the CPU
	PYTHONPATH=client $(BIN)/python -m scripts.demo

test: $(VENV)/.test ## The default suite
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

test-chaos-short: $(VENV)/.test ## One fault run: a page that kills its worker, again and again
	$(BIN)/python -m pytest -n 0 -s -m chaos tests/chaos/test_survival.py -k kills_its_worker

test-chaos: $(VENV)/.test ## All fault runs with real workers and clients, three at a time: they mostly wait
	$(BIN)/python -m pytest -n 3 --dist worksteal -rP --durations=0 --durations-min=5 -m chaos tests/chaos

$(ENGINE)/.ready: requirements/engine.txt requirements/test.txt
	test -x $(ENGINE)/bin/python || $(PYTHON) -m venv $(ENGINE)
	$(ENGINE)/bin/pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements/engine.txt
	test -x $(ENGINE)/worker/bin/python || $(PYTHON) -m venv $(ENGINE)/worker
	$(ENGINE)/worker/bin/pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements/test.txt
	$(ENGINE)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
	  > $$($(ENGINE)/worker/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/engine.pth
	@touch $@

test-engine: $(ENGINE)/.ready ## The worker over the real SGLang on the CPU (11 GB; on 2 cores 7 minutes to install, 17 to run)
	$(ENGINE)/worker/bin/python -m pytest -n 0 -m engine -s tests/engine

bench-boot: $(VENV)/.test ## What the worker adds to its engine's own start
	$(BIN)/python -m bench.boot

bench: $(VENV)/.test ## Stock glmocr and this worker on a simulated engine, about half an hour; wants a quiet machine
	$(BIN)/python -m bench

bench-plots: $(VENV)/.test requirements/bench.txt ## The pictures of docs/performance.md from the newest results
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements/bench.txt
	$(BIN)/python -m bench.plots

bench-quick: $(VENV)/.test ## The short scenarios once, about two minutes
	$(BIN)/python -m bench --quick

test-image: $(VENV)/.test ## Build the image on a stand-in base and let it serve a job (root, buildah, debootstrap)
	$(BIN)/python -m pytest -n 0 -s -m image tests/image

boot-image: $(VENV)/.test ## One job through the container IMAGE, on the embedded engine
	scripts/boot-image $(IMAGE)

deploy: $(VENV)/.test ## The endpoint of deploy/endpoint.yaml to the image IMAGE (by digest)
	scripts/deploy apply --yes --image $(IMAGE)

smoke-endpoint: $(VENV)/.test ## One real document through the deployed endpoint
	scripts/smoke-endpoint

rollback: $(VENV)/.test ## The endpoint back to the image before
	scripts/deploy rollback

fuzz: $(VENV)/.test ## Minutes of fuzzing what takes input apart; what it finds goes to tests/security/corpus
	$(BIN)/python -m pytest -n $(WORKERS) --timeout 0 --hypothesis-profile=fuzz tests/security/test_fuzz.py

lint: $(VENV)/.test ## Style, types, shell, image, workflows
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/shellcheck $(SHELL_FILES)
	$(BIN)/hadolint Dockerfile
	PATH="$(BIN):$$PATH" $(BIN)/actionlint
	$(BIN)/zizmor --quiet --offline .github

format: $(VENV)/.test ## Rewrite to the project's style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.test ## Write what is made from the code: docs/api.md, docs/schema, the settings' table
	$(BIN)/python -m scripts.make_docs

check-models: $(VENV)/.test ## Whether the hub confirms every file of models.manifest.yaml
	scripts/lock-models --check

audit: $(VENV)/.test ## Known vulnerabilities in what the locks pin
	$(BIN)/pip-audit --strict --progress-spinner off --disable-pip --require-hashes $(LOCKS:%=--requirement %)

sbom: $(VENV)/.test ## What the image adds to its base, as CycloneDX: out/sbom.cdx.json
	$(BIN)/python -m scripts.make_sbom out/sbom.cdx.json

lock: ## Resolve the locks anew (needs uv), without index addresses
	scripts/lock-requirements

clean: ## Remove what the targets above made
	rm -rf $(VENV) $(ENGINE) .cache out .mypy_cache .ruff_cache .pytest_cache .hypothesis
