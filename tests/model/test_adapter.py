"""LoRA adapters: what is merged is what PEFT merges, and what cannot be is refused by name."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import byte_tokenizer, tiny_model, write_adapter
from safetensors.torch import load_file, save_file

from ragcache.errors import InvalidArgument, UnusableAdapter
from ragcache.model.adapter import load_adapter, merge_adapter
from ragcache.model.adapter_config import CONFIG, WEIGHTS, note_base, read_config
from ragcache.model.loading import load_reader
from ragcache.model.reader import Reader

SMALL: dict[str, Any] = {"num_hidden_layers": 2}
IDS = list(range(5, 45))
#: Settings that PEFT saves, by what is special about them.
KINDS: dict[str, dict[str, Any]] = {
    "one rank": {},
    "rank and alpha patterns": {
        "rank_pattern": {"q_proj": 5, r"layers\.1\.mlp\.down_proj": 2},
        "alpha_pattern": {"layers.0.self_attn.v_proj": 3, "down_proj": 11},
    },
    "rsLoRA": {"use_rslora": True, "rank_pattern": {"v_proj": 7}},
}


@pytest.fixture(autouse=True)
def _own_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def saved(folder: Path, model: Any) -> Path:
    model.save_pretrained(folder)
    byte_tokenizer().save_pretrained(folder)
    return folder


def trained(folder: Path, base: Path, dtype: torch.dtype, **settings: Any) -> Path:
    """An adapter as PEFT makes and saves it, its matrices random."""
    peft = pytest.importorskip("peft")
    targets = ["q_proj", "v_proj", "down_proj"]
    config = peft.LoraConfig(r=3, lora_alpha=6, target_modules=targets, task_type="CAUSAL_LM", **settings)
    model = peft.get_peft_model(Reader.load(str(base), dtype=str(dtype).removeprefix("torch.")).model, config)
    made = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, matrix in model.named_parameters():
            if "lora_" in name:
                matrix.copy_(torch.randn(matrix.shape, generator=made) * 0.1)
    model.save_pretrained(folder)
    return folder


def merged_by_peft(base: Path, adapter: Path, dtype: torch.dtype) -> Any:
    from transformers import AutoModelForCausalLM

    peft = pytest.importorskip("peft")
    model = AutoModelForCausalLM.from_pretrained(base, dtype=dtype)
    return peft.PeftModel.from_pretrained(model, adapter).merge_and_unload()


@pytest.mark.filterwarnings("ignore::FutureWarning")  # PEFT asks for what transformers has renamed
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("architecture", ["llama", "qwen3"])
def test_a_merged_adapter_gives_the_weights_and_kv_of_pefts_own_merge(
    architecture: str, kind: str, dtype: torch.dtype, tmp_path: Path
) -> None:
    base = saved(tmp_path / "base", tiny_model(architecture, dtype=dtype, **SMALL))
    adapter = trained(tmp_path / "adapter", base, dtype, **KINDS[kind])
    theirs = Reader(merged_by_peft(base, adapter, dtype), byte_tokenizer(), name="theirs")
    ours = Reader.load(str(base), adapter=adapter)
    for (name, mine), other in zip(ours.model.named_parameters(), theirs.model.parameters(), strict=True):
        assert torch.equal(mine, other), name
    assert ours.fingerprint_in_memory == theirs.fingerprint_in_memory
    for mine, other in zip(ours.encode(IDS).layers, theirs.encode(IDS).layers, strict=True):
        assert torch.equal(mine, other)
    assert torch.equal(ours.stock(IDS)[0], theirs.stock(IDS)[0])
    plain = Reader.load(str(base))
    assert not torch.allclose(ours.stock(IDS)[0], plain.stock(IDS)[0], atol=0.01)


def test_merging_leaves_the_base_models_files_alone(tmp_path: Path) -> None:
    base = saved(tmp_path / "base", tiny_model("llama", **SMALL))
    before = (base / "model.safetensors").read_bytes()
    Reader.load(str(base), adapter=write_adapter(tmp_path / "adapter", tiny_model("llama", **SMALL)))
    assert (base / "model.safetensors").read_bytes() == before


def test_the_fingerprint_is_of_base_and_adapter_and_not_of_where_they_lie(tmp_path: Path) -> None:
    model = tiny_model("llama", **SMALL)
    base = saved(tmp_path / "base", model)
    prints = {
        name: Reader.load(str(base), adapter=adapter).fingerprint
        for name, adapter in {
            "none": None,
            "one": write_adapter(tmp_path / "one", model),
            "moved": write_adapter(tmp_path / "moved", model, base_model_name_or_path="/elsewhere"),
            "other weights": write_adapter(tmp_path / "seed", model, seed=2),
            "other scale": write_adapter(tmp_path / "scale", model, lora_alpha=7),
            "other kind of scale": write_adapter(tmp_path / "kind", model, use_rslora=True),
            "other pattern": write_adapter(tmp_path / "pattern", model, alpha_pattern={"q_proj": 7}),
        }.items()
    }
    assert prints.pop("moved") == prints["one"]
    assert len(set(prints.values())) == len(prints), prints


def test_an_adapter_changed_in_place_is_another_even_with_size_and_time_kept(tmp_path: Path) -> None:
    import os

    adapter = write_adapter(tmp_path / "adapter", tiny_model("llama", **SMALL))
    before, status = load_adapter(adapter).digest, (adapter / WEIGHTS).stat()
    data = bytearray((adapter / WEIGHTS).read_bytes())
    data[-100] ^= 1
    (adapter / WEIGHTS).write_bytes(data)
    os.utime(adapter / WEIGHTS, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert load_adapter(adapter).digest != before


def test_a_name_that_differs_is_only_a_note(tmp_path: Path) -> None:
    adapter = write_adapter(tmp_path / "a", tiny_model("llama", **SMALL), base_model_name_or_path="Qwen/Some-Base")
    assert note_base(adapter, "/models/some-base") == ""
    assert "says that it was trained on Qwen/Some-Base" in note_base(adapter, "/models/other")


def test_whoever_loads_a_model_by_name_hears_that_its_adapter_names_another(tmp_path: Path, caplog: Any) -> None:
    model = tiny_model("llama", **SMALL)
    base = saved(tmp_path / "base", model)
    load_reader(str(base), adapter=write_adapter(tmp_path / "own", model, base_model_name_or_path="some/base"))
    assert not caplog.messages
    load_reader(str(base), adapter=write_adapter(tmp_path / "other", model, base_model_name_or_path="Qwen/Some-Base"))
    assert ["trained on Qwen/Some-Base" in message for message in caplog.messages] == [True]


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "DoRA": ({"use_dora": True}, "use_dora=True"),
    "modules to save": ({"modules_to_save": ["lm_head"]}, r"modules_to_save=\['lm_head'\]"),
    "bias": ({"bias": "all"}, "bias='all'"),
    "a bias of LoRA's own": ({"lora_bias": True}, "lora_bias=True"),
    "PiSSA": ({"init_lora_weights": "pissa"}, "init_lora_weights='pissa'"),
    "repeated layers": ({"layer_replication": [[0, 2]]}, "layer_replication"),
    "trained tokens": ({"trainable_token_indices": [3]}, "trainable_token_indices"),
    "parameters": ({"target_parameters": ["experts.gate_up_proj"]}, "target_parameters"),
    "what later versions of PEFT may add": ({"use_new_thing": True}, "use_new_thing=True"),
    "IA3": ({"peft_type": "IA3"}, "peft_type='IA3'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_sum_would_leave_out_is_refused_by_name(case: str, tmp_path: Path) -> None:
    entries, named = REFUSED[case]
    adapter = write_adapter(tmp_path / "a", tiny_model("llama", **SMALL), **entries)
    with pytest.raises(UnusableAdapter, match=rf"{named}.*merge_and_unload.*--model"):
        read_config(adapter)


def test_prompt_tuning_is_refused_and_no_merge_is_promised(tmp_path: Path) -> None:
    adapter = write_adapter(tmp_path / "a", tiny_model("llama", **SMALL), peft_type="PROMPT_TUNING")
    with pytest.raises(UnusableAdapter, match=r"PROMPT_TUNING.*cannot be merged into them; name a LoRA adapter"):
        read_config(adapter)


@pytest.mark.parametrize("entries", [{"r": 0}, {"r": "x"}, {"rank_pattern": {"(": 3}}, {"lora_alpha": None}], ids=str)
def test_settings_that_make_no_sense_are_refused(entries: dict[str, Any], tmp_path: Path) -> None:
    adapter = write_adapter(tmp_path / "a", tiny_model("llama", **SMALL), **entries)
    with pytest.raises(UnusableAdapter, match=r"adapter_config\.json is damaged"):
        read_config(adapter)


@pytest.mark.parametrize("text", ["{", "[]", "\0"], ids=repr)
def test_a_damaged_config_is_refused(text: str, tmp_path: Path) -> None:
    adapter = write_adapter(tmp_path / "a", tiny_model("llama", **SMALL))
    (adapter / CONFIG).write_text(text)
    with pytest.raises(UnusableAdapter, match=r"adapter_config\.json is damaged"):
        read_config(adapter)


def test_a_folder_without_the_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnusableAdapter, match="it is no folder"):
        read_config(tmp_path / "nowhere")
    with pytest.raises(UnusableAdapter, match=r"holds no adapter_config\.json"):
        read_config(tmp_path)
    (tmp_path / CONFIG).write_text("{}")
    with pytest.raises(UnusableAdapter, match=r"holds no adapter_model\.safetensors"):
        read_config(tmp_path)


def test_a_pickled_adapter_is_never_loaded(tmp_path: Path) -> None:
    adapter = write_adapter(tmp_path / "a", tiny_model("llama", **SMALL))
    (adapter / WEIGHTS).rename(adapter / "adapter_model.bin")
    with pytest.raises(UnusableAdapter, match=r"adapter_model\.bin is pickled.*save_pretrained"):
        load_adapter(adapter)


def test_damaged_weights_are_refused(tmp_path: Path) -> None:
    adapter = write_adapter(tmp_path / "a", tiny_model("llama", **SMALL))
    whole = (adapter / WEIGHTS).read_bytes()
    for data in (b"", whole[:-7], whole[:40], b"version https://git-lfs.github.com/spec/v1\n"):
        (adapter / WEIGHTS).write_bytes(data)
        with pytest.raises(UnusableAdapter, match=r"adapter_model\.safetensors is damaged"):
            load_adapter(adapter)


def test_tensors_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    adapter = write_adapter(tmp_path / "a", tiny_model("llama", **SMALL))
    tensors = load_file(adapter / WEIGHTS)
    first = next(name for name in tensors if name.endswith("lora_A.weight"))
    changes: dict[str, tuple[dict[str, Any], str]] = {
        "half a pair": ({name: t for name, t in tensors.items() if name != first}, f"holds no {first}"),
        "another rank": (tensors | {first: torch.zeros(2, 64)}, "says rank 3"),
        "an embedding": (tensors | {"base_model.model.model.embed_tokens.lora_embedding_A": torch.zeros(2, 2)},
                         "lora_embedding_A.*merge_and_unload"),
        "a magnitude": (tensors | {first.replace("lora_A.weight", "lora_magnitude_vector"): torch.zeros(2)},
                        "lora_magnitude_vector.*merge_and_unload"),
        "nothing": ({}, "holds no matrices"),
    }  # fmt: skip
    for changed, named in changes.values():
        save_file(changed, adapter / WEIGHTS)
        with pytest.raises(UnusableAdapter, match=named):
            load_adapter(adapter)


def test_an_adapter_of_another_model_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    deep, wide = tiny_model("llama", num_hidden_layers=3), tiny_model("llama", intermediate_size=80, **SMALL)
    model = tiny_model("llama", **SMALL)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    for other, named in ((deep, r"no module model\.layers\.2\."), (wide, r"down_proj as 64×80, which is 64×96")):
        adapter = load_adapter(write_adapter(tmp_path / "a", other))
        with pytest.raises(UnusableAdapter, match=rf"does not fit my/model: .*{named}.*trained on their/base"):
            adapter.merge_into(model, "my/model")
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


def test_a_matrix_that_is_shared_or_quantised_is_not_added_to(tmp_path: Path) -> None:
    model = tiny_model("llama", tie_word_embeddings=True, **SMALL)
    adapter = write_adapter(tmp_path / "a", model)
    head = "base_model.model.lm_head.lora_{}.weight"
    save_file({head.format("A"): torch.ones(3, 64), head.format("B"): torch.ones(512, 3)}, adapter / WEIGHTS)
    with pytest.raises(UnusableAdapter, match="lm_head shares its matrix with the embeddings"):
        merge_adapter(model, adapter)
    model = tiny_model("llama", **SMALL)
    adapter = write_adapter(tmp_path / "a", model)
    projection = model.model.layers[0].self_attn.q_proj
    projection.weight = torch.nn.Parameter(projection.weight.to(torch.float8_e4m3fn), requires_grad=False)
    with pytest.raises(UnusableAdapter, match=r"layers\.0\.self_attn\.q_proj is quantised"):
        merge_adapter(model, adapter)


def test_a_bad_adapter_is_refused_before_the_model_is_loaded(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="it is no folder"):
        Reader.load("no/such-model", adapter=tmp_path / "nowhere")


def test_the_digest_is_of_the_bytes_that_were_merged(tmp_path: Path) -> None:
    adapter = write_adapter(tmp_path / "a", tiny_model("llama", **SMALL))
    found = load_adapter(adapter)
    data = (adapter / WEIGHTS).read_bytes()
    assert found.digest == hashlib.sha256(data + found.config.identity.encode()).hexdigest()
    assert json.loads(found.config.identity)[0] == 3
