"""Structures of Thrift's compact protocol, in which footers of Parquet files are written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12
_WHOLE = (4, 5, 6)


def struct(data: bytes) -> dict[int, Any]:
    """Fields of the structure that some bytes begin with, by their numbers.

    Raises:
        ValueError: They are none.
        LookupError: They end too early.

    >>> struct(bytes([0x15, 0x02, 0x18, 0x01, 0x61, 0x00]))
    {1: 1, 2: b'a'}
    """
    return _Reader(data).struct()


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Numbers and values of the fields of a structure, each read when it is asked for.

    Raises:
        ValueError: The bytes are none.
        LookupError: They end too early.
    """
    return _Reader(data).fields()


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def struct(self) -> dict[int, Any]:
        return dict(self.fields())

    def fields(self) -> Iterator[tuple[int, Any]]:
        number = 0
        while header := self._byte():
            step, kind = header >> 4, header & 15
            number = number + step if step else self._whole()
            yield number, kind == _TRUE if kind in (_TRUE, _FALSE) else self._value(kind)

    def _value(self, kind: int) -> Any:
        if kind in _WHOLE:
            return self._whole()
        if kind == _BINARY:
            return self._bytes(self._natural())
        if kind == _STRUCT:
            return self.struct()
        if kind in (_LIST, _SET):
            header = self._byte()
            size = header >> 4
            size = self._natural() if size == 15 else size
            return [self._value(header & 15) for _ in range(self._fitting(size))]
        if kind in (_TRUE, _FALSE, _BYTE):
            return self._byte()
        if kind == _DOUBLE:
            return self._bytes(8)
        if kind == _MAP:
            size = self._fitting(self._natural())
            kinds = self._byte() if size else 0
            return [(self._value(kinds >> 4), self._value(kinds & 15)) for _ in range(size)]
        raise ValueError("a field has a type that the protocol does not have")

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _bytes(self, size: int) -> bytes:
        self._at += self._fitting(size)
        return self._data[self._at - size : self._at]

    def _fitting(self, size: int) -> int:
        if size > len(self._data) - self._at:
            raise ValueError("something is longer than the bytes that are left")
        return size

    def _natural(self) -> int:
        found = shift = 0
        while (byte := self._byte()) & 128:
            found |= (byte & 127) << shift
            shift += 7
            if shift > 63:
                raise ValueError("a number has too many bytes")
        return found | byte << shift

    def _whole(self) -> int:
        zigzag = self._natural()
        return (zigzag >> 1) ^ -(zigzag & 1)
