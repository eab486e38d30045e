"""`kubectl hudi`: tables and writers for people, by the rights of whoever asks.

A kubectl plugin that calls kubectl for each request, so that contexts, logins and flags are
kubectl's. It needs Python 3.9 and nothing else. `cluster` runs kubectl, `objects` reads what came,
`finding` asks for it by name, `screen` prints. `why`, `pictures` and `outlook` say what it means.
`commands` are what users ask, `verbs` what they change (each by one patch, `changing`, whose
carrying out `waiting` follows), `planning` what they are about to apply, `auditing` a Job that they
start. `importing` and the folder `streamer` translate jobs, and ask no cluster. Of this repository
it uses `hudi_contract` alone, the names of secrets, the rules for options and the defaults of
namespaces: it reads the API, and knows nothing of the operator's code.
"""
