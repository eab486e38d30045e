"""The console: tables and writers on a web page, with the rights of the user who asks.

The server has no rights itself. Each request brings the bearer token of a user, which is passed on
to the API server in GET requests for the few paths of `asking`, and kept nowhere. `views` says what
a page shows; it uses `hudi_kubectl`, which says the same in a terminal. `cluster` asks the API
server, `mirror` follows what changes there, `server` answers browsers. The folder `files` is the
page: modules that a browser loads unchanged, without a build and without third-party code.
"""
