"""A large csv file is read in ranges, and nobody can tell from the rows or from what is refused."""

from __future__ import annotations

import csv
import io
import itertools
import os
import threading

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from pz_engine.base.cancellation import Cancelled, CancelToken
from pz_engine.connectors.api import BatchOptions
from pz_engine.connectors.toolkit import csv_split
from pz_engine.errors.exceptions import PzConnectorError
from pz_engine.execute.channel import Channel
from tests.engine.config.fuzz_size import cases
from tests.engine.connectors.csv_splitting import outcome, plan, rows_of, small_limits

PAIR = {"k": "int", "v": "varchar"}
TEXTS = {"k": "varchar", "v": "varchar"}
ROWS = "".join(f"{number},text {number}\n" for number in range(100))

_END = st.sampled_from(["\n", "\n", "\n", "\r\n", "\r"])
_CELL = st.one_of(
    st.integers(-5, 999).map(str),
    st.text(alphabet=st.sampled_from(list("ab1 é€\ufeff,\"\n\r'")), max_size=6),
    st.sampled_from(["", " ", "x\ny", 'say ""', ',",', "2147483648", "\n\n\n"]),
)


def _written(cell: str, *, always_quoted: bool) -> str:
    if always_quoted or any(character in cell for character in ',"\n\r'):
        return '"' + cell.replace('"', '""') + '"'
    return cell


@st.composite
def _files(draw: st.DrawFn) -> str:
    """Return records as a writer makes them, with blank lines, any line ends and perhaps one field too many."""
    parts = ["k,v", draw(st.sampled_from(["\n", "\r\n"]))]
    for _ in range(draw(st.integers(0, 25))):
        cells = draw(st.lists(_CELL, min_size=2, max_size=2))
        if draw(st.integers(0, 30)) == 0:
            cells.append("more")
        if draw(st.integers(0, 10)) == 0:
            parts.append(draw(_END))
        parts.append(",".join(_written(cell, always_quoted=draw(st.booleans())) for cell in cells) + draw(_END))
    return "".join(parts).removesuffix(draw(st.sampled_from(["", "\n"])))


_HOSTILE = st.lists(
    st.sampled_from(
        ["a", "1", ",", ",", "\n", "\n", "\n", '"', '"', '""', "\r\n", "\r", " ", "é", "\ufeff", *["1,a\n"] * 15]
    ),
    max_size=60,
).map("".join)
"""Characters in any order: quotes that open nothing, close early, or never do."""


def _compare(folder, data: bytes, columns, readers, block, target) -> None:
    path = folder / "t.csv"
    path.write_bytes(data)
    whole = outcome(plan(path, columns))
    with small_limits(readers=readers, block_bytes=block):
        partitions = plan(path, columns)
        event(f"{'several' if len(partitions) > 1 else 'one'}, {whole[0]}")
        assert outcome(partitions, target) == whole


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One folder for all examples."""
    return tmp_path_factory.mktemp("split")


@cases(300)
@given(_files(), st.sampled_from([PAIR, TEXTS]), st.integers(2, 8), st.integers(1, 40), st.sampled_from([1, 50, 10**6]))
def test_split_files_give_the_rows_and_errors_of_whole_ones(folder, text, columns, readers, block, target):
    """For everything that a writer of csv may produce."""
    _compare(folder, text.encode(), columns, readers, block, target)


@cases(300)
@given(
    st.sampled_from(["k,v\n", "k,v\r\n", "\ufeffk,v\n", "v\n", 'k,"v"\n', "\n"]),
    _HOSTILE,
    st.integers(2, 8),
    st.integers(1, 20),
)
def test_hostile_texts_are_read_as_if_they_were_not_split(folder, header, text, readers, block):
    """Whether they can be split or not."""
    columns = {"v": "varchar"} if header == "v\n" else TEXTS
    _compare(folder, (header + text).encode(), columns, readers, block, 30)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_plain_file_is_split_evenly(put, end, mark):
    """Every row once, in as many ranges as there are readers."""
    path = put("t.csv", (mark + "k,v\n" + ROWS).replace("\n", end))
    with small_limits(readers=4):
        partitions = plan(path, PAIR)
    assert len(partitions) == 4
    shares = [len(rows_of([partition])) for partition in partitions]
    assert sum(shares) == 100
    assert min(shares) >= 20
    assert rows_of(partitions) == [(number, f"text {number}") for number in range(100)]


@pytest.mark.parametrize(
    ("content", "options"),
    [
        ('k,"v"\n' + ROWS, {}),
        ("k\r,v\n" + ROWS, {"columns": {"v": "varchar"}}),
        ("\nk,v\n" + ROWS, {}),
        ("k;v\n" + ROWS.replace(",", ";"), {"delimiter": ";"}),
        ("k\tv\n" + ROWS.replace(",", "\t"), {"format": "tsv"}),
        ("k,v\n" + ROWS, {"ragged": "pad"}),
        ("k,v\n" + ROWS, {"encoding": "latin-1"}),
        ("k,v\n" + ROWS, {"files_per_partition": 1}),
        ("k,v\n" + ROWS + '1,"open\n', {}),
        ("k,v\n" + '1,5" pipe\n2,6" pipe\n' + ROWS, {}),
        ("k,v\n" + '1, "a\n2, "b\n' + ROWS, {}),
        ("k,v\n" + ROWS.replace("\n", "\r"), {}),
        ("k,v\n", {}),
        ("k,v\n\ufeff1,a\n" + ROWS, {"columns": TEXTS}),
    ],
)
def test_one_reader_takes_what_is_not_certainly_safe_to_cut(put, content, options):
    """A header in quotes, another format, a quote that opens nothing: one partition, as ever."""
    path = put("t.csv", content)
    columns = options.pop("columns", PAIR)
    with small_limits():
        assert len(plan(path, columns, **options)) == 1


def test_compressed_file_is_not_split(put):
    """Its bytes have no lines."""
    path = put("t.csv.gz", "k,v\n" + ROWS)
    with small_limits():
        assert len(plan(path, PAIR)) == 1


def test_limits_of_size_and_number(put, monkeypatch):
    """Ranges are never smaller than the least size, and there are never more of them than readers."""
    path = put("t.csv", "k,v\n" + "1,aaaaaa\n" * 100)
    assert len(plan(path, PAIR)) == 1
    for least, expected in ((1, 8), (200, 4), (297, 3), (300, 2), (450, 2), (451, 1), (900, 1)):
        with small_limits(readers=8, range_bytes=least):
            partitions = plan(path, PAIR)
        assert len(partitions) == expected
        if expected > 1:
            sizes = [partition.part.cuts[-1] - partition.part.cuts[0] for partition in partitions]
            assert min(sizes) >= least
            assert sum(sizes) == 900
    assert (csv_split.SMALLEST_FILE_BYTES, csv_split.SMALLEST_RANGE_BYTES) == (64 * 1024**2, 32 * 1024**2)
    for processors, readers in ((1, 1), (4, 4), (64, 8), (None, 1)):
        monkeypatch.setattr(os, "cpu_count", lambda found=processors: found)
        assert csv_split.reader_limit() == readers


def test_several_large_files_share_the_readers(put):
    """With as many files as readers, each file has its own."""
    for number in range(3):
        put(f"t{number}.csv", "k,v\n" + ROWS)
    for readers, expected in ((8, 6), (6, 6), (4, 3)):
        with small_limits(readers=readers):
            partitions = plan(put("t0.csv", "k,v\n" + ROWS).parent / "t*.csv", PAIR)
        assert len(partitions) == expected
        assert len(rows_of(partitions)) == 300


def test_row_beyond_the_limit_leaves_the_file_to_one_reader(put, monkeypatch):
    """Nothing is gained from cutting there, and the reader names the row."""
    monkeypatch.setattr(csv_split, "LONGEST_ROW_BYTES", 50)
    path = put("t.csv", "k,v\n" + ROWS + f'1,"{"x" * 20}\n{"y" * 40}"\n' + ROWS)
    with small_limits():
        assert len(plan(path, PAIR)) == 1
        assert len(plan(put("u.csv", "k,v\n" + ROWS + f'1,"{"x" * 10}\n{"y" * 10}"\n' + ROWS), PAIR)) == 4


def test_misfit_names_the_line_in_the_whole_file(put):
    """Line breaks in quotes counted, also when a later range meets its own misfit first."""
    path = put("t.csv", "k,v\r\n" + ROWS + '7,"a\nb"\n\nx,c\n' + ROWS + "y,d\n" + ROWS)
    with small_limits(readers=6):
        partitions = plan(path, PAIR)
    assert len(partitions) == 6
    failing = [part for part in partitions if outcome([part])[0] == "error"]
    assert len(failing) == 2
    for part in failing:
        with pytest.raises(
            PzConnectorError, match=r"^file 't\.csv', line 105: column 'k' holds a value that INTEGER cannot"
        ):
            rows_of([part])


def test_ragged_row_names_the_line_in_the_whole_file(put):
    """With the numbers of fields."""
    path = put("t.csv", "k,v\n" + ROWS + '7,"a\nb"\n1,2,3\n' + ROWS)
    with small_limits():
        partitions = plan(path, PAIR)
    assert len(partitions) == 4
    with pytest.raises(PzConnectorError, match=r"^file 't\.csv', line 104: expected 2 fields, found 3"):
        rows_of(partitions)


def test_bytes_that_are_no_text_name_the_line(put):
    """As in a file that is not split."""
    path = put("t.csv", b"k,v\n" + ROWS.encode() + b"1,\xff\n" + ROWS.encode())
    with small_limits():
        partitions = plan(path, PAIR)
    assert len(partitions) == 4
    with pytest.raises(PzConnectorError, match=r"^file 't\.csv', line 102 holds bytes that are not text"):
        rows_of(partitions)


def test_folder_keys_and_missing_columns_are_those_of_the_file(put):
    """A range belongs to its file in every way."""
    put("day=3/t.csv", "v,k\n" + "a,1\n" * 100)
    path = put("day=__HIVE_DEFAULT_PARTITION__/t.csv", "v,k\n" + "b,2\n" * 100)
    with small_limits():
        partitions = plan(path.parent.parent / "day=*" / "t.csv", {"k": "int", "day": "int"}, depth=2)
        assert len(partitions) == 4
        assert sorted(set(rows_of(partitions)), key=str) == [(1, 3), (2, None)]
        with pytest.raises(PzConnectorError, match="column 'key' is not in the header") as caught:
            rows_of(plan(path, {"key": "int"}))
    assert caught.value.code == "PZ0353"


@pytest.mark.parametrize("change", ["replace", "append", "truncate"])
def test_file_that_changes_between_scan_and_read_is_read_again_by_a_retry(put, change):
    """Places in one content mean nothing in another."""
    path = put("t.csv", "k,v\n" + ROWS)
    with small_limits():
        partitions = plan(path, PAIR)
    rows_of(partitions[:1])
    if change == "replace":
        other = put("other.csv", "k,v\n" + ROWS)
        other.replace(path)
    elif change == "append":
        path.write_bytes(path.read_bytes() + b"100,x\n")
    else:
        os.truncate(path, 50)
    with pytest.raises(PzConnectorError, match=r"^file 't\.csv' changed while it was read") as caught:
        rows_of(partitions)
    assert caught.value.is_transient


def test_byte_target_is_shared_by_the_readers(put):
    """Batches of a split file are smaller by the number of its readers."""
    path = put("t.csv", "k,v\n" + "".join(f"{number},{'x' * 90}\n" for number in range(2000)))
    with small_limits(readers=4):
        partitions = plan(path, PAIR)
    sizes = [
        batch.nbytes for part in partitions for batch in part.read(BatchOptions(target_bytes=40_000), CancelToken())
    ]
    assert len(partitions) == 4
    assert 5_000 < max(sizes) <= 11_000
    limited = [batch.num_rows for batch in partitions[0].read(BatchOptions(max_rows=7), CancelToken())]
    assert max(limited) == 7


def test_cancelling_stops_the_scan_and_the_readers(put):
    """Between two blocks, and between two batches."""
    path = put("t.csv", "k,v\n" + ROWS)
    cancelled = CancelToken()
    cancelled.set()
    with small_limits():
        token = CancelToken()
        partitions = plan(path, PAIR)
        with pytest.raises(Cancelled):
            csv_split.plan_ranges([path], partitions[0].options, cancelled)
    batches = partitions[1].read(BatchOptions(target_bytes=100), token)
    next(batches)
    token.set()
    with pytest.raises(Cancelled):
        next(batches)


def test_all_readers_work_at_once(put):
    """Through the channel, with a slow consumer, every row arrives once and a fault ends all."""
    path = put("t.csv", "k,v\n" + ROWS * 20)
    with small_limits(readers=8):
        partitions = plan(path, PAIR)
    arrived, threads = [], set()
    Channel(partitions, BatchOptions(target_bytes=4000), CancelToken()).drain(
        lambda batch: (arrived.extend(batch.column(0).to_pylist()), threads.add(threading.get_ident()))
    )
    assert sorted(arrived) == sorted(list(range(100)) * 20)
    assert threads == {threading.get_ident()}
    bad = put("bad.csv", "k,v\n" + ROWS * 20 + "x,y\n")
    with small_limits(readers=8):
        partitions = plan(bad, PAIR)
    assert len(partitions) == 8
    with pytest.raises(PzConnectorError, match=r"file 'bad\.csv', line 2002"):
        Channel(partitions, BatchOptions(target_bytes=4000), CancelToken()).drain(lambda _: None)


@pytest.mark.parametrize("block", [1, 7, 64, 4096])
def test_scan_cuts_only_where_records_begin(put, block):
    """Compared with a reader of csv that knows each record's place."""
    cells = ["a", 'b"c', "d\ne", "f\r\ng", ",", '"', '""', "", "é\n\nü"]
    records = [list(pair) for pair in itertools.product(cells, cells)]
    starts, buffer = set(), io.StringIO(newline="")
    buffer.write("k,v\n")
    for record in records:
        starts.add(len(buffer.getvalue().encode()))
        csv.writer(buffer, lineterminator="\n").writerow(record)
    path = put("t.csv", buffer.getvalue())
    starts.add(path.stat().st_size)
    with small_limits(readers=8, block_bytes=block):
        partitions = plan(path, TEXTS)
    cuts = {cut for partition in partitions for cut in partition.part.cuts} if len(partitions) > 1 else set()
    assert cuts <= starts
    assert len(cuts) > 40 if block == 1 else True
    assert rows_of(partitions) == [tuple(cell or None for cell in record) for record in records]
