import json

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import safe_open

from ragcache.errors import CorruptBlob, InvalidArgument
from ragcache.store import Blob, Int8, pack, unpack
from ragcache.store import blob as blob_module

quick = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def as_buffer(raw: bytes | bytearray) -> torch.Tensor:
    return torch.frombuffer(bytearray(raw), dtype=torch.uint8) if raw else torch.empty(0, dtype=torch.uint8)


def packed(blob, codec=None) -> bytearray:
    return bytearray(b"".join(pack(blob, codec)))


def resealed(raw: bytearray, old: str, new: str) -> bytearray:
    """What somebody who knows the format can write: the header changed, its checksum right again."""
    length = int.from_bytes(raw[:8], "little")
    text = raw[8 : 8 + length].decode().rstrip()
    assert old in text
    return sealed(text.replace(old, new, 1).encode(), raw[8 + length :])


def sealed(text: bytes, data: bytes) -> bytearray:
    header = bytearray(len(text).to_bytes(8, "little") + text)
    header[blob_module._SEAL] = blob_module._seal(header)
    return header + data


def same_tensors(one, other) -> bool:
    return all(a.dtype == b.dtype and torch.equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_a_blob_comes_back_bit_for_bit(make_blob, dtype):
    blob = make_blob(dtype=dtype)
    found = unpack(as_buffer(packed(blob)), blob.key)
    assert same_tensors(found.layers, blob.layers)
    assert found.extras.keys() == blob.extras.keys()
    assert same_tensors(found.extras.values(), blob.extras.values())
    assert (found.key, found.token_ids, found.start) == (blob.key, blob.token_ids, blob.start)
    assert found.about == blob.about
    assert found.nbytes == blob.nbytes


def test_int8_layers_come_back_near_and_in_their_dtype(make_blob):
    blob = make_blob(tokens=64)
    found = unpack(as_buffer(packed(blob, Int8())), blob.key)
    for layer, exact in zip(found.layers, blob.layers, strict=True):
        assert layer.dtype == exact.dtype
        torch.testing.assert_close(layer, exact, atol=0.03, rtol=0)
    assert same_tensors(found.extras.values(), blob.extras.values())


def test_raw_layers_are_views_into_the_buffer(make_blob):
    blob = make_blob()
    buffer = as_buffer(packed(blob))
    found = unpack(buffer, blob.key)
    storage = buffer.untyped_storage().data_ptr()
    assert {layer.untyped_storage().data_ptr() for layer in found.layers} == {storage}


def test_packing_does_not_copy_the_tensors(make_blob):
    blob = make_blob()
    part = pack(blob)[1]
    blob.layers[0].zero_()
    assert not any(part)


def test_a_transposed_layer_is_stored_as_it_looks(make_blob):
    layer = torch.randn(2, 5, 2, 8).transpose(1, 2)
    blob = Blob("k", (1, 2, 3, 4, 5), 0, (layer,))
    assert torch.equal(unpack(as_buffer(packed(blob)), "k").layers[0], layer)


@pytest.mark.parametrize("codec", [None, Int8()])
def test_safetensors_reads_our_files(make_blob, tmp_path, codec):
    blob = make_blob()
    path = tmp_path / "blob.safetensors"
    path.write_bytes(packed(blob, codec))
    with safe_open(path, "pt") as file:
        names = file.keys()
        metadata = file.metadata()
        tensors = {name: file.get_tensor(name) for name in names}
    assert metadata["format"] == "ragcache-kv"
    assert metadata["key"] == blob.key
    assert json.loads(metadata["token_ids"]) == list(blob.token_ids)
    assert torch.equal(tensors["extra.hidden"], blob.extras["hidden"])
    if codec is None:
        assert torch.equal(tensors["layer.0001.kv"], blob.layers[1])


@pytest.mark.parametrize("codec", [None, Int8()])
def test_each_layer_is_one_range_and_layers_lie_in_order(make_blob, codec):
    raw = packed(make_blob(), codec)
    header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
    del header["__metadata__"]
    in_file = sorted(header, key=lambda name: (header[name]["data_offsets"], name.startswith("extra")))
    groups = [name.rsplit(".", 1)[0] for name in in_file]
    assert groups == sorted(groups, key=lambda group: (group == "extra", group))


def test_another_keys_file_is_refused(make_blob, key_of):
    with pytest.raises(CorruptBlob, match="another key"):
        unpack(as_buffer(packed(make_blob(0))), key_of(1))


@quick
@given(data=st.data(), int8=st.booleans())
def test_any_flipped_bit_is_found(make_blob, data, int8):
    blob = make_blob()
    raw = packed(blob, Int8() if int8 else None)
    place = data.draw(st.integers(0, len(raw) - 1))
    raw[place] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(CorruptBlob):
        unpack(as_buffer(raw), blob.key)


@quick
@given(data=st.data())
def test_any_truncation_is_found(make_blob, data):
    blob = make_blob()
    raw = packed(blob)
    with pytest.raises(CorruptBlob):
        unpack(as_buffer(raw[: data.draw(st.integers(0, len(raw) - 1))]), blob.key)


@quick
@given(junk=st.binary(max_size=400))
def test_any_junk_is_refused(junk):
    with pytest.raises(CorruptBlob):
        unpack(as_buffer(junk), "k")


def test_zeroed_and_trailing_bytes_are_found(make_blob):
    blob = make_blob()
    raw = packed(blob)
    with pytest.raises(CorruptBlob, match="8 bytes too many"):
        unpack(as_buffer(raw + bytes(8)), blob.key)
    for start in range(0, len(raw), 64):
        zeroed = raw.copy()
        zeroed[start : start + 64] = bytes(len(zeroed[start : start + 64]))
        if zeroed != raw:
            with pytest.raises(CorruptBlob):
                unpack(as_buffer(zeroed), blob.key)


def test_a_header_of_a_terabyte_is_refused_without_allocating_it(make_blob):
    blob = make_blob()
    raw = packed(blob)
    raw[:8] = (1 << 40).to_bytes(8, "little")
    with pytest.raises(CorruptBlob, match="truncated"):
        unpack(as_buffer(raw), blob.key)


def test_a_huge_header_is_refused(make_blob, monkeypatch):
    blob = make_blob()
    monkeypatch.setattr(blob_module, "_HEADER_LIMIT", 100)
    with pytest.raises(CorruptBlob, match="its header claims"):
        unpack(as_buffer(packed(blob)), blob.key)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('"version":"1"', '"version":"2"', "format 2"),
        ('"codec":"raw"', '"codec":"zip"', "codec 'zip' is unknown"),
        ('"data_offsets":[0,320]', '"data_offsets":[0,322]', "does not lie"),
        ('"data_offsets":[320,', '"data_offsets":[318,', "does not lie"),
        ('"data_offsets":[320,', '"data_offsets":[322,', "does not lie"),
        ('"data_offsets":[480,540]', '"data_offsets":[320,380]', "does not lie"),
        ('"data_offsets":[0,320]', '"data_offsets":[-320,0]', "no size"),
        ('"data_offsets":[0,320]', '"data_offsets":["0",320]', "malformed"),
        ('"data_offsets":[0,320]', '"data_offsets":[0]', "malformed"),
        ('"shape":[2,2,5,8]', '"shape":[-2,-2,5,8]', "no size"),
        ('"shape":[2,2,5,8]', '"shape":[2.0,2,5,8]', "no size"),
        ('"shape":[2,2,5,8]', f'"shape":[{1 << 70},2,5,8]', "does not lie"),
        ('"shape":[2,2,5,8]', '"shape":[2,2,8,5]', "malformed"),
        ('"dtype":"BF16"', '"dtype":"I16"', "malformed"),
        ('"dtype":"BF16"', '"dtype":"F8"', "malformed"),
        ('"shape":[0]', f'"shape":[0,{1 << 70}]', "malformed"),
        ('"start":"7"', '"start":"x"', "malformed"),
        ('"start":"7"', '"start":"-1"', "malformed"),
        ('"layers":"[', '"layers":"[[', "malformed"),
        ('"token_ids":"[0,', '"token_ids":"[', "malformed"),
        ('"about":"', '"about":"[', "malformed"),
        ('"layer.0000.kv":{', '"extra.q":{', "malformed"),
        ('"sums":"{', '"sums":"1', "malformed"),
    ],
)
def test_a_hostile_header_with_a_right_checksum_is_refused(make_blob, old, new, reason):
    blob = make_blob()
    with pytest.raises(CorruptBlob, match=reason):
        unpack(as_buffer(resealed(packed(blob), old, new)), blob.key)


def test_a_deeply_nested_header_is_refused():
    text = blob_module._OPENING + b"0" * 32 + b'","x":' + b"[" * 100_000
    with pytest.raises(CorruptBlob, match="malformed"):
        unpack(as_buffer(sealed(text, b"")), "k")


@pytest.mark.parametrize(
    ("token_ids", "start", "layers"),
    [
        ((), 0, (torch.zeros(2, 1, 0, 4),)),
        ((1,), 0, ()),
        ((1,), -1, (torch.zeros(2, 1, 1, 4),)),
        ((1,), 0, (torch.zeros(3, 1, 1, 4),)),
        ((1,), 0, (torch.zeros(2, 1, 2, 4),)),
        ((1,), 0, (torch.zeros(2, 1, 4),)),
        ((1,), 0, (torch.zeros(2, 1, 1, 4, dtype=torch.int8),)),
    ],
)
def test_a_blob_with_the_wrong_shape_cannot_be_made(token_ids, start, layers):
    with pytest.raises(InvalidArgument):
        Blob("k", token_ids, start, layers)


def test_an_extra_of_an_unknown_dtype_is_refused():
    blob = Blob("k", (1,), 0, (torch.zeros(2, 1, 1, 4),), extras={"odd": torch.zeros(1, dtype=torch.complex64)})
    with pytest.raises(InvalidArgument, match="complex64"):
        pack(blob)


def test_odd_sizes_that_break_alignment_still_read(make_blob):
    layers = (torch.randn(2, 1, 1, 1).bfloat16(), torch.randn(2, 1, 1, 1).half(), torch.randn(2, 1, 1, 1))
    extras = {"byte": torch.tensor([1], dtype=torch.uint8), "wide": torch.randn(2).double()}
    blob = Blob("k", (1,), 0, layers, extras)
    found = unpack(as_buffer(packed(blob)), "k")
    assert same_tensors(found.layers, layers)
    assert torch.equal(found.extras["wide"], extras["wide"])
