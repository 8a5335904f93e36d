"""The lines of a text file, made ready for Arrow's CSV parser.

To that parser a quoted value may go on over line ends, whatever its options
say: one quote that is never closed swallows the rows after it. Here each line
is looked at alone. One that leaves a quote open is replaced by `OPEN_QUOTE`,
which has one column and so is reported by the parser in its place.

The parser also cannot report a line that is not UTF-8. Where such a line has
the wrong number of columns, its odd bytes are replaced, and the parser reports
that; where it has the right number, its bytes stay as they are.
"""

from __future__ import annotations

import io
import re

import pyarrow as pa

from ._formats import FileFormat


# Not longer than any line that leaves a quote open.
OPEN_QUOTE = "\0"

_LINE_ENDS = b"\r\n"
_LINE_END = re.compile(rb"[\r\n]")


class Lines(io.RawIOBase):
    """A binary stream of whole lines; blank ones at the end are left out.

    Args:
        stream: The bytes of the file; this stream does not close it.
        layout: How they are laid out.
        width: Columns of a line that is a row.
        block_bytes: Bytes to read at once, and the longest line looked at.
    """

    def __init__(
        self,
        stream: pa.NativeFile,
        layout: FileFormat,
        width: int,
        block_bytes: int,
    ) -> None:
        super().__init__()
        self._stream = stream
        self._width = width
        self._block_bytes = block_bytes
        self._lines = _whole_lines(layout.delimiter) if layout.quoted else None
        self._value = _values(layout.delimiter, quoted=layout.quoted)
        self._checked = memoryview(b"")
        self._rest = b""
        self._ended = False

    def readable(self) -> bool:
        """Always true."""
        return True

    def read(self, size: int = -1) -> bytes:
        """The next bytes, `size` at most; none at the end.

        Raises:
            OSError: If the file cannot be read or unpacked.
        """
        while not self._checked and not self._ended:
            self._checked = memoryview(self._next())
        size = len(self._checked) if size < 0 else size
        taken = bytes(self._checked[:size])
        self._checked = self._checked[size:]
        return taken

    def _next(self) -> bytes:
        new = self._stream.read(self._block_bytes)
        self._ended = not new
        text = self._rest + new
        if self._ended:
            text, self._rest = text.rstrip(_LINE_ENDS), b""
            text += b"\n" if text else b""
        else:
            # The last line may go on, and blank lines may be the last.
            end = len(text.rstrip(_LINE_ENDS))
            last = max(text.rfind(b"\n", 0, end), text.rfind(b"\r", 0, end))
            if len(text) - last > self._block_bytes:
                # Too long for the parser, which will say so.
                last = len(text) - 1
            text, self._rest = text[: last + 1], text[last + 1 :]
        if self._lines is not None:
            text = _check_quotes(text, self._lines)
        return text if _is_utf8(text) else self._check_widths(text)

    def _check_widths(self, text: bytes) -> bytes:
        """Makes lines of the wrong width UTF-8, so that they are reported."""
        lines = text.splitlines(keepends=True)
        for i, line in enumerate(lines):
            if _is_utf8(line):
                continue
            if len(self._value.findall(line)) != self._width:
                lines[i] = line.decode(errors="replace").encode()
        return b"".join(lines)


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _whole_lines(delimiter: str) -> re.Pattern[bytes]:
    """Matches as many lines as leave no quote open.

    Quotes mean what they mean to Arrow: one that does not begin a value is
    part of it. Nothing is ever tried twice, so the time is linear.
    """
    # Groups are not repeated possessively: Python 3.11 before 3.11.5 gets that
    # wrong (gh-106052).
    mark, value = _patterns(delimiter, quoted=True)
    line = value + rb"(?:" + mark + value + rb")*(?:\r\n?|\n)"
    return re.compile(rb"(?:(?>" + line + rb"))*")


def _values(delimiter: str, *, quoted: bool) -> re.Pattern[bytes]:
    """Matches each value of a line that leaves no quote open."""
    mark, value = _patterns(delimiter, quoted=quoted)
    return re.compile(rb"(?:^|" + mark + rb")" + value)


def _patterns(delimiter: str, *, quoted: bool) -> tuple[bytes, bytes]:
    """What matches a delimiter, and a value."""
    mark = re.escape(delimiter.encode())
    rest = rb"[^" + mark + rb"\r\n]*+"
    whole = rb'"(?:[^"\r\n]++|"")*"(?!")'
    return mark, rb"(?:" + whole + rb'|(?!"))' + rest if quoted else rest


def _check_quotes(text: bytes, whole_lines: re.Pattern[bytes]) -> bytes:
    """Replaces the lines of a text that leave a quote open."""
    parts = []
    copied = 0
    quote = text.find(b'"')
    while quote >= 0:
        line_feed = text.rfind(b"\n", copied, quote)
        line_return = text.rfind(b"\r", copied, quote)
        start = max(line_feed + 1, line_return + 1, copied)
        match = whole_lines.match(text, start)
        start = start if match is None else match.end()
        if start == len(text):
            break
        parts += [text[copied:start], OPEN_QUOTE.encode()]
        end = _LINE_END.search(text, start)
        copied = len(text) if end is None else end.start()
        quote = text.find(b'"', copied)
    return b"".join([*parts, text[copied:]])
