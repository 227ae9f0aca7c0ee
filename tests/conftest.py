"""Tiny random models of real architectures, a byte-level tokenizer, and nothing from the network."""

import json
import os
import threading

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["RAGCACHE_MODEL"] = "bundled"  # the default of a machine that has no other
os.environ["RAGCACHE_CALIBRATE"] = "0"  # or answers would depend on how fast the machine is
os.environ["OMP_NUM_THREADS"] = "1"  # of the processes that tests start, too: two test processes share two cores

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest
import torch
from hypothesis import settings
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from ragcache import RagCache
from ragcache.engine.engine import Engine
from ragcache.engine.stream import Stream
from ragcache.index.index import Index
from ragcache.model.links import LinkTokens
from ragcache.model.reader import Reader
from ragcache.model.tuning import Tuning

settings.register_profile("any machine", deadline=None)  # a busy one takes its time
settings.load_profile("any machine")

#: Files with much work in few tests. They begin first, or at the end one process would wait for the other.
LONG = {
    *("test_framework_examples.py", "test_finetune.py", "test_xquad.py", "test_kernels.py", "test_bundled.py"),
    *("test_lean_start.py", "test_demo.py", "test_app.py", "test_examples.py", "test_adding_a_method.py"),
    *("test_trainer.py", "test_single_flight.py", "test_files.py", "test_terminal.py", "test_doctor.py"),
}
CHAT = (
    "{{ bos_token }}{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
SPECIAL = ["<|bos|>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>"]
SIZES: dict[str, Any] = {
    "vocab_size": 512,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 2048,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": None,
}
YARN = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 512}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 5e5,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 256,
}
GEMMA_ROPE = {
    "full_attention": {"rope_type": "default", "rope_theta": 1e6},
    "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
}
HYBRID = ["sliding_attention", "full_attention"] * 2
LINEAR = {
    "linear_key_head_dim": 8, "linear_value_head_dim": 12, "linear_num_key_heads": 2, "linear_num_value_heads": 4,
    "linear_conv_kernel_dim": 4, "layer_types": ["linear_attention", "full_attention"] * 2,
}  # fmt: skip
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
#: Architecture to (model type, configuration beyond SIZES).
ARCHITECTURES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("llama", {}),
    "llama-llama3": ("llama", {"rope_parameters": LLAMA3}),
    "llama-yarn": ("llama", {"rope_parameters": YARN}),
    "llama-linear": ("llama", {"rope_parameters": {"rope_type": "linear", "rope_theta": 1e4, "factor": 2.0}}),
    "qwen2": ("qwen2", {}),
    "qwen2-hybrid": (
        "qwen2",
        {"use_sliding_window": True, "sliding_window": 48, "max_window_layers": 2, "layer_types": HYBRID},
    ),
    "qwen3": ("qwen3", {}),
    "mistral": ("mistral", {"sliding_window": None}),
    "mistral-sliding": ("mistral", {"sliding_window": 48}),
    "gemma3": (
        "gemma3_text",
        {
            "sliding_window": 48,
            "layer_types": HYBRID,
            "rope_parameters": GEMMA_ROPE,
            "query_pre_attn_scalar": 16,
        },
    ),
    "phi3": ("phi3", {}),
    "phi3-partial": ("phi3", {"partial_rotary_factor": 0.5, "rope_parameters": {
        "rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5}}),
    "glm4": ("glm4", {}),
    "smollm3": ("smollm3", {}),
    "qwen3-next": ("qwen3_next", {**LINEAR, **EXPERTS, "shared_expert_intermediate_size": 32}),
    "qwen3.5": ("qwen3_5_text", LINEAR),
    "lfm2": ("lfm2", {"layer_types": ["conv", "full_attention"] * 2}),
    "granite4": (
        "granitemoehybrid",
        {
            "layer_types": ["linear_attention", "full_attention"] * 2, "position_embedding_type": "rope",
            "mamba_n_heads": 8, "mamba_d_head": 16, "mamba_d_state": 12, "mamba_n_groups": 1, "mamba_expand": 2,
            "mamba_chunk_size": 16,
            "num_local_experts": 0, "num_experts_per_tok": 0, "shared_intermediate_size": 32,
        },
    ),
}  # fmt: skip
HYBRIDS = ("qwen3-next", "qwen3.5", "lfm2", "granite4")
"""Those whose layers carry a state, in part: single tokens of theirs cannot be computed anew."""
ATTENDING = [name for name in ARCHITECTURES if name not in HYBRIDS]


def tiny_model(name: str, *, dtype: torch.dtype = torch.float32, **changes: Any) -> Any:
    """A random-weight model of the architecture; the same weights every time."""
    from transformers import AutoConfig, AutoModelForCausalLM

    kind, extra = ARCHITECTURES[name]
    config = AutoConfig.for_model(kind, **{**SIZES, **extra, **changes})
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config, dtype=dtype)
    with torch.no_grad():  # larger than the usual 0.02, so that attention is not uniform and mistakes show
        for name, parameter in model.named_parameters():
            if parameter.ndim >= 2:
                parameter.normal_(0, 0.12)
            elif name.endswith("A_log"):  # or a state forgets within a few tokens
                parameter.uniform_(-4, -2)
    return model


def write_adapter(folder: Path, model: Any, *, seed: int = 1, rank: int = 3, **entries: Any) -> Path:
    """A random LoRA adapter of a model's query, value and down projections, in PEFT's files."""
    from safetensors.torch import save_file

    made, tensors = torch.Generator().manual_seed(seed), {}
    for name, weight in model.named_parameters():
        if name.endswith(("q_proj.weight", "v_proj.weight", "down_proj.weight")):
            out, into = weight.shape
            module = f"base_model.model.{name.removesuffix('.weight')}"
            tensors[f"{module}.lora_A.weight"] = torch.randn(rank, into, generator=made)
            tensors[f"{module}.lora_B.weight"] = torch.randn(out, rank, generator=made) * 0.1
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / "adapter_model.safetensors", metadata={"format": "pt"})
    config = {"peft_type": "LORA", "task_type": "CAUSAL_LM", "base_model_name_or_path": "their/base", "r": rank,
              "lora_alpha": 6, "bias": "none", "target_modules": ["q_proj", "v_proj", "down_proj"]}  # fmt: skip
    (folder / "adapter_config.json").write_text(json.dumps(config | entries))
    return folder


def byte_tokenizer(chat_template: str | None = CHAT) -> PreTrainedTokenizerFast:
    """Every byte is a token, so any text comes back as it was."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: i for i, token in enumerate([*SPECIAL, *alphabet])}
    backend = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens(SPECIAL)
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token="<|bos|>",
        eos_token="<|end|>",
        additional_special_tokens=SPECIAL[2:],
        chat_template=chat_template,
        clean_up_tokenization_spaces=False,
    )


def tiny_reader(name: str = "llama", **changes: Any) -> Reader:
    """A reader over a tiny random model, which passes for tuned by whatever recipe a row takes."""
    return tune(Reader(tiny_model(name, **changes), byte_tokenizer(), name=f"tiny-{name}"))


def tune(reader: Reader, recipe: str = ANY, *, links: int = 2, documents: int = 16) -> Reader:
    """The reader with a record of having been tuned, and random link tokens."""
    attention, positions = "independent", "composite" if recipe == "turborag-composite" else "reordered"
    reader.tuning = Tuning(recipe, attention, positions, links, documents if links else 0, "base", 1)
    table = reader.model.get_input_embeddings().weight
    made = torch.Generator().manual_seed(5)
    embeddings = torch.randn(documents, links, table.shape[1], generator=made) * 0.12
    reader.links = LinkTokens(embeddings.to(table), len(table)) if links else None
    return reader


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where several processes share the tests, the files that take longest come first, then those with most tests."""
    if hasattr(config, "workerinput"):
        counts = Counter(item.path for item in items)
        items.sort(key=lambda item: (item.path.name not in LONG, -counts[item.path], item.path))


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[RagCache]]:
    """What is opened from now on; closed behind the test."""
    seen, really = list[RagCache](), RagCache.open

    def remember(*args: Any, **options: Any) -> RagCache:
        seen.append(really(*args, **options))
        return seen[-1]

    monkeypatch.setattr(RagCache, "open", remember)
    yield seen
    for rag in seen:
        rag.close()


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny random Llama on disk, as a user would have a model."""
    folder = tmp_path_factory.mktemp("llama")
    tiny_model("llama").save_pretrained(folder)
    byte_tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def readers() -> Callable[[str], Reader]:
    """Readers by architecture, each made once."""
    made: dict[str, Reader] = {}

    def get(name: str) -> Reader:
        if name not in made:
            made[name] = tiny_reader(name)
        return made[name]

    return get


@pytest.fixture
def reader(readers: Callable[[str], Reader]) -> Reader:
    return readers("llama")


@pytest.fixture
def index(tmp_path: Path, reader: Reader) -> Iterator[Index]:
    with Index(tmp_path / "index", reader) as index:
        yield index


@pytest.fixture
def engine(reader: Reader, index: Index) -> Engine:
    return Engine(reader, index)


@pytest.fixture
def streams(monkeypatch: pytest.MonkeyPatch) -> list[Stream]:
    """Every stream that an engine begins, and the `thread` that it was begun in."""
    seen: list[Stream] = []
    began = Stream.__init__

    def remember(self: Stream, *args: Any, **options: Any) -> None:
        began(self, *args, **options)
        self.thread = threading.get_ident()  # type: ignore[attr-defined]
        seen.append(self)

    monkeypatch.setattr(Stream, "__init__", remember)
    return seen
