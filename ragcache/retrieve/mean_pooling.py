"""The commonest kind of sentence embedder, a transformer and the mean of its states, through transformers alone.

Importing sentence-transformers takes longer than embedding a question does. Models of this one kind need nothing of it;
what they give is the same up to rounding, which a test holds.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_MODULES = ["Transformer", "Pooling", "Normalize"]
_BATCH = 32  # texts at a time, as sentence-transformers has it


class MeanPooling:
    """A folder in sentence-transformers' layout whose modules are a transformer, mean pooling and normalisation.

    Parameters
    ----------
    folder : Path
        One that `is_mean_pooling` says yes to.
    device : str
        Where it runs.

    Raises
    ------
    OSError, ValueError
        If it holds no model.
    """

    def __init__(self, folder: Path, device: str) -> None:
        from transformers import AutoModel, AutoTokenizer

        self._tokenizer: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        model: Any = AutoModel.from_pretrained(
            folder, local_files_only=True, use_safetensors=True, trust_remote_code=False
        )
        self._model = model.to(device).eval()
        self._device = device
        limit = _read(folder / "sentence_bert_config.json", {}).get("max_seq_length")
        self.max_tokens = int(limit or self._model.config.max_position_embeddings)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors, (texts, dim) float32; of a text over `max_tokens` only its beginning is read."""
        order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))  # little padding
        vectors: dict[int, NDArray[np.float32]] = {}
        for first in range(0, len(order), _BATCH):
            batch = order[first : first + _BATCH]
            vectors.update(zip(batch, self._pooled([texts[i] for i in batch]), strict=True))
        return np.stack([vectors[i] for i in range(len(texts))])

    def count(self, text: str) -> int:
        """Tokens of a text, special tokens included, nothing truncated."""
        return len(self._tokenizer(text, truncation=False, padding=False, verbose=False)["input_ids"])

    def _pooled(self, texts: Sequence[str]) -> NDArray[np.float32]:
        import torch

        inputs = self._tokenizer(
            list(texts), padding=True, truncation=True, max_length=self.max_tokens, return_tensors="pt"
        ).to(self._device)
        with torch.inference_mode():
            states = self._model(**inputs).last_hidden_state  # (texts, tokens, dim)
            mask = inputs["attention_mask"].unsqueeze(-1).to(states)  # (texts, tokens, 1)
            means = (states * mask).sum(1) / mask.sum(1).clamp_min(1e-9)
            unit: NDArray[np.float32] = torch.nn.functional.normalize(means, dim=1).float().cpu().numpy()
        return unit


def is_mean_pooling(folder: Path) -> bool:
    """Whether that is all that a folder's model does: nothing lowered, no prompt put in front, no other pooling."""
    kinds = [str(module.get("type", "")).rpartition(".")[2] for module in _read(folder / "modules.json", [])]
    pooling = _read(folder / "1_Pooling" / "config.json", {})
    chosen = [name for name, value in pooling.items() if value is True]
    plain = not _read(folder / "sentence_bert_config.json", {}).get("do_lower_case")
    unprompted = not _read(folder / "config_sentence_transformers.json", {}).get("default_prompt_name")
    return kinds == _MODULES and chosen == ["pooling_mode_mean_tokens"] and plain and unprompted


def _read(file: Path, absent: Any) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return absent
