"""etcd and Kubernetes behind the Protocols of `model.ports`.

Requests, watches, leader election, certificates, and the classes of their errors.

May use manifests, model, api and hudi_contract; never the planners or the control loop. An error
leaves this layer as one of Retryable, Conflict, OutcomeUnknown, Fatal, Refused or LeaseLost; a
request whose answer is missing is OutcomeUnknown, never a failure (I11).

`etcd` has the reads and transactions of the protocol, on the transport of `etcd_rpc`; `etcd_watch`
follows changes, `etcd_fitness` judges the etcd itself, `etcd_pulse` lets it be noticed that it was
set back. `kubernetes` asks the API server, `kubernetes_facts` makes facts of its answers. `leader`
elects, `authority` signs certificates, `identity_files` lends them as files, `identity` reads what
pods must know of the gateway, `credentials_broker` asks for storage credentials, and
`store_request` sees whether a store refuses them.
"""
