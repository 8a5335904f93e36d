"""Delimited text: what is read, and every way in which it can be wrong."""

import gzip

import numpy as np
import pytest

from embedra.data import Block, ClickReader, Columns, DataError, string_ids


COLUMNS = Columns("click", numeric=("age",), categorical=("site", "ad"))
HEADER = "site,click,age,ad\n"
GOOD = "a,1,2.5,x\nb,0,,y\n"


@pytest.fixture
def write(tmp_path):
    def write_file(text, name="log.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write_file


def read(path, layout="csv", columns=COLUMNS, **options):
    reader = ClickReader(path, layout, columns, **options)
    return Block.concatenate(list(reader.blocks())), reader.report


def test_csv_gives_numbers_ids_and_labels_in_order(write):
    block, report = read(write(HEADER + GOOD))
    np.testing.assert_array_equal(block.labels, [1, 0])
    np.testing.assert_array_equal(block.numeric, [[2.5], [np.nan]])
    expected = [string_ids(["a", "b"]), string_ids(["x", "y"])]
    np.testing.assert_array_equal(block.categorical.T, expected)
    assert (report.rows, report.malformed) == (2, 0)


def test_columns_not_named_are_not_looked_at(write):
    path = write("junk," + HEADER + "?," + GOOD.splitlines()[0])
    assert len(read(path)[0]) == 1


def test_missing_category_has_the_id_of_the_empty_string(write):
    block, _ = read(write(HEADER + ",1,1,\n"))
    assert (block.categorical == string_ids([""])[0]).all()


def test_quotes_windows_line_ends_and_byte_order_mark_are_understood(write):
    text = "\ufeff" + HEADER + 'a,1,2,"x,y"\n'
    block, _ = read(write(text.replace("\n", "\r\n")))
    assert block.categorical[0, 1] == string_ids(["x,y"])[0]


def test_bytes_that_are_not_utf8_are_categories_too(write):
    block, _ = read(write(HEADER.encode() + b"\xff\xfe,1,2,x\n"))
    assert block.categorical[0, 0] == string_ids([b"\xff\xfe"])[0]


def test_compressed_file_reads_like_a_plain_one(write):
    packed = write(gzip.compress((HEADER + GOOD).encode()), "log.csv.gz")
    assert len(read(packed)[0]) == 2


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("a,1,2\n", "3 columns, expected 4"),
        ("a,1,2,x,y\n", "5 columns, expected 4"),
        ("\n", "column 'click' is empty, expected 0 or 1"),
        ("a,2,2,x\n", "column 'click' is '2', expected 0 or 1"),
        ("a,yes,2,x\n", "column 'click' is 'yes', expected 0 or 1"),
        ("a,,2,x\n", "column 'click' is empty, expected 0 or 1"),
        ("a,1,two,x\n", "column 'age' is 'two', expected a finite number"),
        ("a,1,inf,x\n", "column 'age' is 'inf', expected a finite number"),
        ("a,1,1e39,x\n", "column 'age' is '1e39', expected a finite number"),
        ('a,1,2,"x\n', "a quote is not closed on its line"),
        ('a,1,"2,x\n', "a quote is not closed on its line"),
        ('"\n', "a quote is not closed on its line"),
        ('a,1,2,"x""\r\n', "a quote is not closed on its line"),
    ],
)
def test_malformed_line_is_named_or_left_out(write, line, reason):
    path = write(HEADER + GOOD + line + GOOD)
    with pytest.raises(DataError, match=r"log\.csv:4: ") as raised:
        read(path)
    assert reason in str(raised.value)
    block, report = read(path, on_error="skip")
    assert (len(block), report.rows, report.malformed) == (4, 4, 1)
    assert report.examples[0].startswith(f"{path}:4: {reason}")


def test_many_malformed_lines_are_counted_and_the_first_shown(write):
    lines = ["a,1,2,x\n"] * 50_000
    for i in range(0, 50_000, 100):
        lines[i] = "a,1\n" if i % 200 else "a,9,2,x\n"
    path = write(HEADER + "".join(lines))
    block, report = read(path, on_error="skip")
    assert len(block) == 49_500
    assert report.malformed == 500
    shown = [int(text.split(":")[1]) for text in report.examples]
    assert shown == [2, 102, 202, 302, 402]
    assert "500 malformed" in report.summary()


def test_line_numbers_hold_across_blocks_of_the_parser(write):
    filler = "x" * 1000
    lines = [f"{filler},1,2,x\n"] * 12_000
    lines[10] = "a,1\n"
    lines[11_000] = f"{filler},7,2,x\n"
    _, report = read(write(HEADER + "".join(lines)), on_error="skip")
    shown = [int(text.split(":")[1]) for text in report.examples]
    assert shown == [12, 11_002]


def test_value_broken_over_lines_is_malformed_lines_of_its_own(write):
    path = write(HEADER + GOOD + 'a,1,2,"x\ny"\n' + GOOD + "a,7,2,x\n")
    block, report = read(path, on_error="skip")
    assert (len(block), report.malformed) == (4, 3)
    shown = [text.split(":", 1)[1] for text in report.examples]
    assert shown[0] == "4: a quote is not closed on its line"
    assert shown[1] == "5: 1 columns, expected 4"
    assert shown[2].startswith("8: column 'click' is '7'")


def test_quote_within_a_value_is_part_of_it(write):
    block, _ = read(write(HEADER + '5" wide,1,2,"say ""x"", y"\n'))
    expected = string_ids(['5" wide', 'say "x", y'])
    np.testing.assert_array_equal(block.categorical[0], expected)


def test_open_quotes_are_found_in_every_block_of_the_parser(write):
    filler = "x" * 1000
    lines = [f'"{filler}",1,2,x\n', f"{filler},1,2,x\n"] * 6_000
    wrong = [10, 4_200, 4_201, 11_999]
    for i in wrong:
        lines[i] = f'a,1,2,"{filler}\n'
    block, report = read(write(HEADER + "".join(lines)), on_error="skip")
    assert len(block) == 12_000 - len(wrong)
    shown = [int(text.split(":")[1]) for text in report.examples]
    assert shown == [i + 2 for i in wrong]


@pytest.mark.parametrize("end", ["\n", "\n\n", "\r\n\r\n", ""])
def test_blank_lines_at_the_end_are_no_rows(write, end):
    _, report = read(write(HEADER + GOOD.rstrip() + end))
    assert (report.rows, report.malformed) == (2, 0)


def test_lone_carriage_returns_as_line_ends_are_refused(write):
    path = write((HEADER + GOOD).replace("\n", "\r"))
    with pytest.raises(DataError, match=r"log\.csv: .*carriage return"):
        read(path)


def test_header_with_an_open_quote_is_refused(write):
    with pytest.raises(DataError, match=r"log\.csv:1: cannot be split"):
        read(write('"' + HEADER + GOOD))


def test_damaged_compressed_file_is_named(write):
    packed = gzip.compress((HEADER + GOOD * 20_000).encode())
    with pytest.raises(DataError, match=r"log\.csv\.gz: cannot be"):
        read(write(packed[:-20], "log.csv.gz"))
    with pytest.raises(DataError, match=r"log\.csv\.gz: cannot be"):
        read(write(HEADER + GOOD, "log.csv.gz"))
    with pytest.raises(DataError, match=r"log\.csv: is packed by gzip"):
        read(write(packed))


@pytest.mark.parametrize("text", ["", "\n", "\n\n"])
def test_empty_file_is_refused(write, text):
    with pytest.raises(DataError, match=r"log\.csv: the file is empty"):
        read(write(text))


@pytest.mark.parametrize("text", [HEADER, HEADER.strip(), HEADER + "a,1\n"])
def test_file_without_a_usable_row_is_refused(write, text):
    with pytest.raises(DataError, match=r"log\.csv: "):
        read(write(text), on_error="skip")


def test_header_that_names_a_column_twice_is_refused(write):
    with pytest.raises(DataError, match=r"log\.csv: more than one.*'ad'"):
        ClickReader(write("ad," + HEADER + "z,a,1,2,x\n"), "csv", COLUMNS)


def test_missing_file_and_folder_are_refused(tmp_path):
    with pytest.raises(DataError, match="expected a file; it is missing"):
        ClickReader(tmp_path / "none.csv", "csv", COLUMNS)
    with pytest.raises(DataError, match="expected a file; it is a folder"):
        ClickReader(tmp_path, "csv", COLUMNS)


def test_absent_column_is_named_with_those_present(write):
    path = write("site,click\na,1\n")
    with pytest.raises(DataError, match="no column 'age', 'ad'") as raised:
        ClickReader(path, "csv", COLUMNS)
    assert "The file has: site, click." in str(raised.value)


def test_csv_without_columns_says_what_is_needed(write):
    with pytest.raises(ValueError, match="name the label, numeric and"):
        ClickReader(write(HEADER + GOOD), "csv")


def test_error_inside_tf_data_is_kept_as_failure(write):
    reader = ClickReader(write(HEADER + "a,5,2,x\n"), "csv", COLUMNS)
    with pytest.raises(Exception, match=r"log\.csv:2"):
        list(reader.dataset(2))
    assert isinstance(reader.failure, DataError)


@pytest.mark.parametrize(
    "line",
    [b"\xff,1,2\n", b'"\xff,b",1,2\n', b'a,1,2,"x,\xff",\xfe\r\n', b"\xff\n"],
)
@pytest.mark.parametrize("end", [GOOD.encode(), b"\xff,1,2,\xfe\n\xfe,0,,y\n"])
def test_wrong_width_is_reported_of_lines_that_are_not_utf8(write, line, end):
    path = write((HEADER + GOOD).encode() + line + end)
    with pytest.raises(DataError, match=r"log\.csv:4: \d columns, expected 4"):
        read(path)
    block, report = read(path, on_error="skip")
    assert (len(block), report.malformed) == (4, 1)


def test_bytes_that_are_not_utf8_stay_as_they_are_beside_wrong_lines(write):
    text = HEADER.encode() + b'\xff,1\n"\xfe,b",1,2,x\n'
    block, report = read(write(text), on_error="skip")
    assert report.malformed == 1
    assert block.categorical[0, 0] == string_ids([b"\xfe,b"])[0]


def test_wrong_width_without_quotes_is_counted_by_delimiters(write):
    row = b"a,1,21060100," + b",".join([b"\xff"] * 21)
    path = write(row.replace(b"a", b'"', 1) + b"\n" + row + b",x\n")
    block, report = read(path, "avazu", None, on_error="skip")
    assert (len(block), report.malformed) == (1, 1)
    assert "25 columns, expected 24" in report.examples[0]


@pytest.mark.parametrize(
    ("codec", "shown"),
    [
        ("utf-16", "UTF-16"),
        ("utf-16-le", "UTF-16LE"),
        ("utf-16-be", "UTF-16BE"),
        ("utf-32", "UTF-32"),
    ],
)
def test_other_encodings_are_named(write, codec, shown):
    path = write((HEADER + GOOD).encode(codec))
    with pytest.raises(DataError, match=rf"begins as {shown} does") as raised:
        ClickReader(path, "csv", COLUMNS)
    assert f"iconv -f {shown}" in str(raised.value)


def test_other_encoding_is_named_where_there_is_no_header(write):
    with pytest.raises(DataError, match="begins as UTF-16 does"):
        ClickReader(write("a,1\n".encode("utf-16")), "avazu")


def test_beginning_is_checked_without_reading_the_rest(write):
    many = ("x" * 1000 + ",1,2,x\n") * 12_000
    late = ClickReader(write(HEADER + many + "a,7,2,x\n"), "csv", COLUMNS)
    late.check_beginning()
    assert late.report.rows == 0
    early = ClickReader(write(HEADER + "a,7,2,x\n" + many), "csv", COLUMNS)
    with pytest.raises(DataError, match=r"log\.csv:2: column 'click'"):
        early.check_beginning()
