"""`kubectl hudi`: tables and writers for people, with the rights of the user who runs it.

A kubectl plugin that calls kubectl for each request, so that contexts, logins and flags are
kubectl's. It needs Python 3.9 and nothing else. `cluster` runs kubectl, `objects` reads what came,
`finding` asks for it by name, `screen` prints. `why`, `past` and `pictures` say what it means;
`lanes` has more of it than fits a terminal, `report` puts it into a bundle for support, without
secrets. `commands` only read, `verbs` change something (each by one patch, `changing`; `waiting`
follows its progress), `auditing` starts a Job. `etcd` and `restoring` maintain the release's etcd,
which `release` describes; `purging` deletes what deleted tables have left in namespaces.
`importing` and the folder `streamer` translate jobs, and ask no cluster.
The only package of this repository that they use is `hudi_contract`, for names and ids, the rules
for options and the defaults of namespaces: they read the API, and know nothing of the
operator's code. The enums of the contract need Python 3.11: a test compares the words that `lanes`,
`objects` and `verbs` have in their place. The console (`hudi_console`) shows by the same modules
what `kubectl hudi` prints.

`planning`, which says what would happen to a file that is about to be applied, is the exception:
`outlook` asks the operator's own planner (`hudi_operator.plan.forecast`), and both need the
operator's Python, 3.11. They are imported when the plan is asked for, and not before.
"""
