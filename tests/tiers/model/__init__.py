"""The protocol searched exhaustively with `tests.support.model`, and the checker of logs
(`tests.support.trace`) tested on good and on damaged traces.
"""
