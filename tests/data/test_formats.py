"""The layouts known by name, on lines in their shape."""

import numpy as np
import pytest

from embedra.data import Block, ClickReader, Columns, file_format, string_ids


def read(path, layout):
    return Block.concatenate(list(ClickReader(path, layout).blocks()))


def test_criteo_line_without_values_is_all_missing(tmp_path):
    path = tmp_path / "criteo.tsv"
    full = ["1", *(str(i) for i in range(13)), *("abcdef01",) * 26]
    path.write_text("\t".join(full) + "\n0" + "\t" * 39 + "\n")
    block = read(path, "criteo")
    np.testing.assert_array_equal(block.labels, [1, 0])
    np.testing.assert_array_equal(block.numeric[0], np.arange(13))
    assert np.isnan(block.numeric[1]).all()
    assert (block.categorical[0] == string_ids(["abcdef01"])).all()
    assert (block.categorical[1] == string_ids([""])).all()


AVAZU_HEADER = (
    "id,click,hour,C1,banner_pos,site_id,site_domain,site_category,app_id,"
    "app_domain,app_category,device_id,device_ip,device_model,device_type,"
    "device_conn_type,C14,C15,C16,C17,C18,C19,C20,C21\n"
)
AVAZU_LINE = "77,1,14102123," + ",".join("abcdefghijklmnopqrstu") + "\n"


@pytest.mark.parametrize("header", [AVAZU_HEADER, ""])
def test_avazu_needs_no_header_and_takes_hours_apart(tmp_path, header):
    path = tmp_path / "avazu.csv"
    path.write_text(header + AVAZU_LINE)
    block = read(path, "avazu")
    assert block.numeric.shape == (1, 0)
    # 21 October 2014 was a Tuesday.
    expected = string_ids(["23", "2", *"abcdefghijklmnopqrstu"])
    np.testing.assert_array_equal(block.categorical[0], expected)


@pytest.mark.parametrize("hour", ["14102124", "1410212", "today", ""])
def test_avazu_hour_that_is_none_is_malformed(tmp_path, hour):
    path = tmp_path / "avazu.csv"
    path.write_text(AVAZU_LINE + AVAZU_LINE.replace("14102123", hour))
    with pytest.raises(ValueError, match=r"avazu\.csv:2: column 'hour' is"):
        read(path, "avazu")


def test_unknown_format_lists_the_known_ones():
    with pytest.raises(ValueError, match="'orc'.*criteo, avazu, csv"):
        file_format("orc")


def test_columns_refuse_a_name_used_twice_and_no_features():
    with pytest.raises(ValueError, match="more than once: ad"):
        Columns("click", numeric=("ad",), categorical=("ad",))
    with pytest.raises(ValueError, match="only the label 'click'"):
        Columns("click")


@pytest.mark.parametrize(
    ("name", "rows", "clicks"), [("criteo", 7200, 1549), ("avazu", 8087, 1397)]
)
def test_real_extract_reads_whole(shared_data, name, rows, clicks):
    block = read(shared_data / name / "train.csv", name)
    assert (len(block), int(block.labels.sum())) == (rows, clicks)
