"""A client of TensorFlow's C API: run as a program by the tests.

    python c_api_client.py LIBRARIES FOLDER INPUT OUTPUT IDS ANSWER

It loads the SavedModel in FOLDER, feeds the ids in the file IDS to INPUT, an
op's name, and writes what OUTPUT, `op:index`, gives to the file ANSWER. The
TensorFlow of Python is not imported, only two libraries in the folder LIBRARIES
are loaded.
"""

import ctypes
import sys
from ctypes import byref, c_char_p, c_int, c_int64, c_size_t, c_void_p
from pathlib import Path

import numpy as np


FLOAT, INT64 = 1, 9


class Output(ctypes.Structure):
    """TF_Output."""

    _fields_ = (("operation", c_void_p), ("index", c_int))


class Client:
    """A session of a SavedModel."""

    def __init__(self, libraries, folder):
        self._libraries = [
            ctypes.CDLL(str(Path(libraries, name)), mode=ctypes.RTLD_GLOBAL)
            for name in (
                "libtensorflow_framework.so.2",
                "libtensorflow_cc.so.2",
            )
        ]
        self._status = c_void_p(self._call("TF_NewStatus", c_void_p))
        self._graph = c_void_p(self._call("TF_NewGraph", c_void_p))
        options = c_void_p(self._call("TF_NewSessionOptions", c_void_p))
        session = self._call(
            "TF_LoadSessionFromSavedModel",
            c_void_p,
            options,
            None,
            folder.encode(),
            (c_char_p * 1)(b"serve"),
            1,
            self._graph,
            None,
            self._status,
        )
        self._check()
        self._session = c_void_p(session)

    def rows_of(self, ids, given, wanted):
        """Runs the session, with ids for `given`."""
        shape = (c_int64 * ids.ndim)(*ids.shape)
        tensor = c_void_p(
            self._call(
                "TF_AllocateTensor",
                c_void_p,
                INT64,
                shape,
                ids.ndim,
                c_size_t(ids.nbytes),
            )
        )
        data = self._call("TF_TensorData", c_void_p, tensor)
        ctypes.memmove(data, ids.ctypes.data, ids.nbytes)
        name, _, index = wanted.partition(":")
        fed = self._output(given, 0)
        fetched = self._output(name, int(index))
        answer = c_void_p()
        self._call(
            "TF_SessionRun",
            None,
            self._session,
            None,
            byref(fed),
            byref(tensor),
            1,
            byref(fetched),
            byref(answer),
            1,
            None,
            0,
            None,
            self._status,
        )
        self._check()
        assert self._call("TF_TensorType", c_int, answer) == FLOAT
        dims = self._call("TF_NumDims", c_int, answer)
        shape = [self._call("TF_Dim", c_int64, answer, i) for i in range(dims)]
        size = self._call("TF_TensorByteSize", c_size_t, answer)
        data = self._call("TF_TensorData", c_void_p, answer)
        rows = np.frombuffer(ctypes.string_at(data, size), np.float32)
        return rows.reshape(shape)

    def _output(self, name, index):
        operation = self._call(
            "TF_GraphOperationByName", c_void_p, self._graph, name.encode()
        )
        assert operation, f"no op {name}"
        return Output(operation, index)

    def _call(self, name, result, *arguments):
        for library in self._libraries:
            function = getattr(library, name, None)
            if function is not None:
                function.restype = result
                return function(*arguments)
        raise AttributeError(name)

    def _check(self):
        if self._call("TF_GetCode", c_int, self._status):
            raise RuntimeError(
                self._call("TF_Message", c_char_p, self._status).decode()
            )


if __name__ == "__main__":
    libraries, folder, given, wanted, ids, answer = sys.argv[1:]
    client = Client(libraries, folder)
    np.save(answer, client.rows_of(np.load(ids), given, wanted))
    assert not {"tensorflow", "embedra"} & set(sys.modules)
